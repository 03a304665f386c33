"""What all marts are built with: the tables that they read, the SQL of events, settings of Spark, files."""
