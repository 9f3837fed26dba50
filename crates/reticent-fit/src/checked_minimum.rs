//! What objective and output perturbation share: encoding, shape of the question, and the fit, which is one release.

use std::sync::Arc;

use reticent_core::adjacency::Adjacency;
use reticent_core::encoding::Encoding;
use reticent_core::minimum::{L2_BITS, Minimum, UnusableLabel, row_length};
use reticent_core::query::{Map, QueryShape};
use reticent_core::schema::Schema;

use crate::column_scaling::from_bounds;
use crate::method::{FitRequest, classes_of, outputs, start_weights};
use crate::plan::{Expectation, Plan, PlanError};
use crate::prepared_fit::{Fitted, PreparedFit};

/// A request for a minimum that fits the schema.
pub(crate) struct CheckedMinimum {
    pub(crate) encoding: Arc<Encoding>,
    /// Norm of the longest row, in units of the encoded columns.
    pub(crate) norm_bound: f64,
    /// Where the ridge draws to; none is zero, for which room is made once the question is known to be no larger than one may be.
    centre: Option<Vec<f64>>,
    outputs: usize,
    classes: u32,
    /// Ridge for rows of norm 1, if it was given.
    l2: Option<f64>,
}

impl CheckedMinimum {
    /// Checks target, centre and `--l2`, which is given for the encoded columns as they are.
    pub(crate) fn new(method: &'static str, request: &FitRequest<'_>) -> Result<Self, PlanError> {
        let schema = request.schema;
        let classes = classes_of(method, schema)?;
        let (encoding, norm_bound) = from_bounds(schema, true);
        let outputs = outputs(schema);
        let centre = request.init.map(|model| start_weights(model, schema, &encoding)).transpose()?;
        let length = row_length(&encoding);
        let l2 = request.options.number("l2", "a finite number above 0", |l2| l2 > 0.0)?;
        let l2 = l2.map(|l2| l2 / (length * length));
        Ok(Self { encoding: Arc::new(encoding), norm_bound, centre, outputs, classes, l2 })
    }

    /// The question without a linear term, with the given ridge for rows of norm 1, or the default.
    pub(crate) fn minimum(&self, default_l2: f64, adjacency: Adjacency) -> Minimum {
        let steps = self.l2.unwrap_or(default_l2) * f64::from(1u32 << L2_BITS);
        Minimum {
            classes: self.classes,
            columns: self.encoding.coding().columns().len() as u32,
            // Saturates; the shape refuses what is out of range.
            l2: steps.round() as u64,
            perturbation: 0,
            unusable: match adjacency {
                // The rows are public and stay: then a label costs its own change alone.
                Adjacency::Label => UnusableLabel::FirstClass,
                Adjacency::AddRemove | Adjacency::Replace | Adjacency::Party => UnusableLabel::Skip,
            },
        }
    }

    pub(crate) fn has_l2(&self) -> bool {
        self.l2.is_some()
    }

    pub(crate) fn shape(&self, minimum: Minimum, schema: &Schema) -> Result<QueryShape, PlanError> {
        Ok(QueryShape::of_schema(Map::Minimum(minimum), schema)?)
    }

    /// The fit that is the one release of `plan`.
    pub(crate) fn prepared(self, plan: Plan) -> PreparedFit {
        let Self { encoding, centre, outputs, .. } = self;
        let centre = centre.unwrap_or_else(|| vec![0.0; outputs * encoding.coding().columns().len()]);
        PreparedFit::new(plan, Some(encoding.clone()), move |releases| {
            let released = releases.minimum(0, &encoding, &centre)?;
            Ok(Fitted { encoding: encoding.clone(), weights: released.values(), covariance: None })
        })
    }

    /// The figures that a plan tells. `noise`: standard deviation of one weight of the answer, for rows of norm 1.
    pub(crate) fn expectations(&self, minimum: Minimum, noise: f64) -> Vec<Expectation> {
        let length = row_length(&self.encoding);
        vec![
            Expectation {
                name: "norm bound of a row",
                value: self.norm_bound,
                meaning: "L2, over encoded columns with the intercept".to_owned(),
            },
            Expectation {
                name: "ridge",
                value: minimum.ridge() * length * length,
                meaning: "total L2 penalty of the encoded weights, the intercept among them".to_owned(),
            },
            Expectation {
                name: "noise added to a weight",
                value: noise / length,
                meaning: "standard deviation, in encoded units; a linear term's effect comes on top".to_owned(),
            },
        ]
    }
}

/// Rows that may differ between two neighbours, at most.
pub(crate) fn rows_changed(method: &'static str, request: &FitRequest<'_>) -> Result<u32, PlanError> {
    let (unit_rows, relation) = (request.schema.privacy().unit.rows_max(), &request.claim.relation);
    match relation.adjacency {
        Adjacency::AddRemove | Adjacency::Label => Ok(unit_rows),
        Adjacency::Replace => Ok(2 * unit_rows),
        Adjacency::Party => Err(PlanError::adjacency(method, relation, |other| other.adjacency != Adjacency::Party)),
    }
}
