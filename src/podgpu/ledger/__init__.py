"""Pure functions: claims, holders and readings in, bookings out. No I/O, no clock."""
