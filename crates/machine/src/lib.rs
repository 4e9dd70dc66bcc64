//! Hardware that costs time.
