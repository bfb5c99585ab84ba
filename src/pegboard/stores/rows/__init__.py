"""What the stores in databases share: values as they stand in rows, and what waits to be written."""
