"""The methods of search, one a file; `method_registry` has their names."""
