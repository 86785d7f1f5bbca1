"""Write the tables of the documentation that repeat the code."""
