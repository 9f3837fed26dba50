//! Integration tests of the public half, on generated tables.

mod evaluate;
mod every_method;
mod functional;
mod gram;
mod minimum;
mod model;
mod noisy_gd;
mod noisy_gd_number;
mod noisy_gd_lecture;
mod noisy_gd_slides;
mod party;
mod public_fit;
mod schemas;
mod table;
mod uncentred_columns;
mod walr;
