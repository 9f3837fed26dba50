//! Public models that an audited fit starts from: a claim must hold whatever somebody declared public.

use std::sync::Arc;

use reticent_core::record::Label;
use reticent_core::schema::{Schema, TargetKind};
use reticent_fit::column_scaling::from_bounds;
use reticent_fit::method::outputs;
use reticent_fit::model::Model;
use reticent_fit::prepared_fit::Fitted;

/// Score of the class that a start model is sure of: the slope of a row of another class is then all but as large as a slope
/// can be, and stays so while the model moves.
const SURE: f64 = 20.0;

/// Where a fit starts.
pub(super) struct Start {
    /// In a description of what was audited.
    pub(super) description: &'static str,
    pub(super) model: Option<Model>,
    /// The class that the model is sure of.
    pub(super) sure_of: Option<Label>,
}

impl Start {
    pub(super) fn of(model: Option<Model>) -> Self {
        let description = if model.is_some() { "; start model as given" } else { "" };
        Self { description, model, sure_of: None }
    }

    /// Starts to try: none, and a model that is sure of the first class or of the last one, whatever the features.
    pub(super) fn candidates(schema: &Schema) -> Vec<Self> {
        let mut starts = vec![Self::of(None)];
        if let TargetKind::Classes(classes) = &schema.target().kind {
            let last = classes.len() - 1;
            starts.push(sure_of(schema, 0, "; start model sure of the first class"));
            starts.push(sure_of(schema, last, "; start model sure of the last class"));
        }
        starts
    }
}

fn sure_of(schema: &Schema, class: usize, description: &'static str) -> Start {
    let (encoding, _) = from_bounds(schema, true);
    let (columns, outputs) = (encoding.coding().columns().len(), outputs(schema));
    let mut weights = vec![0.0; columns * outputs];
    match (outputs, class) {
        // One score, of the second class.
        (1, 0) => weights[0] = -SURE,
        (1, _) => weights[0] = SURE,
        (_, class) => weights[class * columns] = SURE,
    }
    let fitted = Fitted { encoding: Arc::new(encoding), weights, covariance: None };
    let model = Model::from_weights(schema, &fitted, None);
    Start { description, model: Some(model), sure_of: Some(Label::Class(class as u16)) }
}
