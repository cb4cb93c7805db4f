"""The code that speaks to providers. An adapter never touches a table and never decides."""
