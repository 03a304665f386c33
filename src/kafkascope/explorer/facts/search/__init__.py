"""The search: its entries, the ranking, and the script for the browser."""
