"""Several replicas on one database behind a plain proxy, under load, while replicas die and the database restarts."""
