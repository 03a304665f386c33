"""The rules: what each looks for, its thresholds with their reasons, its sentence and its advice."""
