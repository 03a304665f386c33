"""Tests of `health.disks`."""
