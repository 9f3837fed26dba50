//! Private figures centre on the exact ones, within their stated errors.

use std::sync::Arc;

use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_fit::evaluate::{private, public};
use reticent_testkit::memory_ledger::MemoryLedger;
use reticent_testkit::seeded_session;

use super::table::{Asked, claim, engine, fit, rows, schema};

const ROWS: usize = 4000;

#[test]
fn noisy_figures_are_within_their_errors() {
    let schema = schema("unit = \"row\"\nadjacency = \"add-remove\"");
    let engine = engine(&schema, ROWS);
    let (_, model) = fit(&schema, &engine, &Asked::of("noisy-gd"), 5.0, 1);
    let scored: Vec<(f64, bool)> = rows(ROWS)
        .iter()
        .map(|([x0, x1], category, class)| {
            let mut columns = [1.0, *x0, *x1, 0.0, 0.0, 0.0, 0.0];
            columns[3 + *category as usize] = 1.0;
            (model.score(0, &columns), *class)
        })
        .collect();
    let exact = public::evaluate_binary(&scored);

    let plan = private::plan(&schema, claim(schema.relation(), 1.0)).expect("affordable");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::Clip(2.5)));
    let mut squares = [0.0; 3];
    const RUNS: u64 = 60;
    for seed in 0..RUNS {
        let mut ledger = MemoryLedger::promising(schema.relation(), None);
        let mut session = seeded_session(&engine, &mut ledger, schema.relation(), seed).expect("opens");
        let grants = session.pay(&plan.request("table", &schema)).expect("no limit");
        let weights = model.weights(&encoding);
        let noisy = private::evaluate(&mut session, grants, &plan, &schema, &encoding, &weights).expect("in memory");
        assert_eq!(noisy.n, None);
        let pairs = [(noisy.accuracy, exact.accuracy), (noisy.auc, exact.auc), (noisy.log_loss, exact.log_loss)];
        for (square, (noisy, exact)) in squares.iter_mut().zip(pairs) {
            let (noisy, exact) = (noisy.expect("two classes"), exact.expect("two classes"));
            let error = noisy.standard_error.expect("private figures have one");
            assert!(error > 0.0 && error < 0.05, "{error}");
            *square += ((noisy.value - exact.value) / error).powi(2);
        }
    }
    for (square, name) in squares.iter().zip(["accuracy", "auc", "log loss"]) {
        // Mean of 60 squares of standard normals: 1 ± 0.18; lattice, buckets and the delta method may add a little.
        let mean = square / RUNS as f64;
        assert!((0.4..2.0).contains(&mean), "{name}: {mean}");
    }
}
