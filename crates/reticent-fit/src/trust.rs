//! How far a released value is believed, beside what is expected before it is released.

/// Share of the prior in an estimate with prior deviation `prior` and noise deviation `noise`.
pub(crate) fn trust(prior: f64, noise: f64) -> f64 {
    prior * prior / (prior * prior + noise * noise)
}
