"""What the catalog says, as the plain facts that pages show."""
