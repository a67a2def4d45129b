"""The REST side: public contract, pool, picture store. Never imports `worker` or `vision`."""
