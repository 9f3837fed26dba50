//! Objective and output perturbation find a signal, and take a public model as centre.

use super::table::{Asked, accuracy, claim, engine, fit, schema};

const ROWS: usize = 4000;
const METHODS: [&str; 2] = ["objective-perturbation", "output-perturbation"];

fn privacy(adjacency: &str) -> String {
    format!("unit = \"row\"\nadjacency = \"{adjacency}\"\nrows = {ROWS}\nrows_max = 100000")
}

#[test]
fn a_large_budget_finds_the_signal_and_a_usual_one_most_of_it() {
    for adjacency in ["add-remove", "replace", "label"] {
        let schema = schema(&privacy(adjacency));
        let engine = engine(&schema, ROWS);
        for method in METHODS {
            let (_, model) = fit(&schema, &engine, &Asked::of(method), 50.0, 1);
            assert!(accuracy(&model, ROWS) > 0.81, "{method} {adjacency}: {}", accuracy(&model, ROWS));
        }
        let (_, model) = fit(&schema, &engine, &Asked::of("objective-perturbation"), 1.0, 2);
        assert!(accuracy(&model, ROWS) > 0.77, "{adjacency}: {}", accuracy(&model, ROWS));
    }
}

#[test]
fn a_public_model_is_the_centre_of_the_ridge() {
    let schema = schema(&privacy("add-remove"));
    let whole = engine(&schema, ROWS);
    let (_, public) = fit(&schema, &whole, &Asked::of("objective-perturbation"), 100.0, 1);
    // So much ridge that the rows hardly matter.
    let asked = Asked { init: Some(&public), ..Asked::of("output-perturbation").with("l2", 1e6) };
    let (plan, model) = fit(&schema, &whole, &asked, 1.0, 2);
    let (ours, theirs) = (&model.outputs[0], &public.outputs[0]);
    assert!((ours.intercept - theirs.intercept).abs() < 0.02, "{} and {}", ours.intercept, theirs.intercept);
    assert!(plan.public.iter().any(|fact| fact.contains("start model")), "{:?}", plan.public);
}

#[test]
fn requests_that_cannot_be_met_are_refused_when_planned() {
    let unknown = schema("unit = \"row\"\nadjacency = \"add-remove\"");
    let refused = |asked: Asked<'_>, schema: &reticent_core::schema::Schema| {
        asked.prepare(schema, &claim(schema.relation(), 1.0)).err().expect("refused")
    };
    let error = refused(Asked::of("output-perturbation"), &unknown).to_string();
    assert!(error.contains("rows") && error.contains("--l2"), "{error}");
    assert!(Asked::of("output-perturbation").with("l2", 3).prepare(&unknown, &claim(unknown.relation(), 1.0)).is_ok());
    let error = refused(Asked::of("objective-perturbation").with("l2", 1e-9), &unknown).to_string();
    assert!(error.contains("--l2"), "{error}");
}
