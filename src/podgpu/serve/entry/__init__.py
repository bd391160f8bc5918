"""From a new connection to a served one: who may wait, who gets in, and who makes room for others."""
