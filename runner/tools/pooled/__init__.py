"""What the sources' locked results say together."""
