//! Integration tests of the public half, on generated tables.

mod evaluate;
mod functional;
mod gram;
mod minimum;
mod model;
mod noisy_gd;
mod party;
mod table;
mod walr;
