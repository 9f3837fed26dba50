//! A fitted model: coefficients in the user's units, with the certificate of what they reveal.

use reticent_core::encoding::{Coding, Column, Encoding, symlog};
use reticent_core::schema::{FeatureKind, Schema, TargetKind};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::certificate::Certificate;

/// Version of the model file that this software writes and reads.
pub const MODEL_VERSION: u32 = 1;

const MODEL_FORMAT: &str = "reticent-model";

/// A binary logistic regression, as it is written to disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    format: String,
    version: u32,
    task: String,
    /// Names of the classes; probabilities are of the last.
    pub classes: Vec<String>,
    /// Score where every coefficient's column is zero.
    pub intercept: f64,
    /// One coefficient a column, in the order of the schema's coding without the intercept.
    pub coefficients: Vec<Coefficient>,
    /// Everything that was declared public about the table.
    pub schema: Schema,
    /// What the model reveals and why. `None` marks a model that was fitted without privacy, to public data.
    pub certificate: Option<Certificate>,
}

/// A coefficient of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// The column: `age`, `symlog(income)` or `workclass=Private`.
    pub column: String,
    /// Change of the log-odds: per unit of a numeric column, or where a category holds.
    pub coefficient: f64,
}

/// A model file that cannot be used.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Not JSON, or a field is missing or of the wrong type.
    #[error("this is not a model file: {0}; a model file is written by `reticent fit --out`")]
    Syntax(#[from] serde_json::Error),
    /// Another kind of document.
    #[error("this is not a model file: its format is {0:?}, not \"{MODEL_FORMAT}\"")]
    Format(String),
    /// Written by another version.
    #[error(
        "the model file has version {0}, and this program reads version {MODEL_VERSION}; use the program that wrote it"
    )]
    Version(u64),
    /// Coefficients do not belong to the schema.
    #[error("the model file contradicts itself: {0}")]
    Inconsistent(String),
}

impl Model {
    /// Turns weights of encoded columns into coefficients of the user's columns.
    ///
    /// ```text
    ///   z = sum_j w_j scale_j (value_j - centre_j),   value = (x - low) / (high - low), its symlog form, or 0/1
    /// ```
    ///
    /// # Panics
    /// When there is not one weight a column.
    #[must_use]
    pub fn from_weights(
        schema: &Schema,
        encoding: &Encoding,
        weights: &[f64],
        certificate: Option<Certificate>,
    ) -> Self {
        let coding = encoding.coding();
        assert_eq!(weights.len(), coding.columns().len(), "one weight a column");
        let mut intercept = 0.0;
        let mut coefficients = Vec::with_capacity(weights.len() - 1);
        let shapes = encoding.scale().iter().zip(encoding.centre());
        for (((column, name), weight), (scale, centre)) in
            coding.columns().iter().zip(coding.column_names()).zip(weights).zip(shapes)
        {
            let slope = weight * scale;
            intercept -= slope * centre;
            let coefficient = match column {
                Column::Intercept => {
                    intercept += slope;
                    continue;
                }
                Column::Linear { feature } | Column::SymLog { feature } => {
                    let (low, high) = transformed_bounds(schema, *feature, column);
                    intercept -= slope * low / (high - low);
                    slope / (high - low)
                }
                Column::Category { .. } => slope,
            };
            coefficients.push(Coefficient { column: name.clone(), coefficient });
        }
        Self {
            format: MODEL_FORMAT.to_owned(),
            version: MODEL_VERSION,
            task: "binary-classification".to_owned(),
            classes: class_names(schema),
            intercept,
            coefficients,
            schema: schema.clone(),
            certificate,
        }
    }

    /// Weights of encoded columns that give the same scores: the inverse of [`Self::from_weights`].
    ///
    /// Columns whose scale is zero get weight zero.
    #[must_use]
    pub fn weights(&self, encoding: &Encoding) -> Vec<f64> {
        let mut weights = vec![0.0];
        let mut intercept = self.intercept;
        let columns = encoding.coding().columns().iter().skip(1).zip(&self.coefficients);
        for (index, (column, coefficient)) in columns.enumerate() {
            let per_value = match column {
                Column::Linear { feature } | Column::SymLog { feature } => {
                    let (low, high) = transformed_bounds(&self.schema, *feature, column);
                    intercept += coefficient.coefficient * low;
                    coefficient.coefficient * (high - low)
                }
                Column::Category { .. } | Column::Intercept => coefficient.coefficient,
            };
            let (scale, centre) = (encoding.scale()[index + 1], encoding.centre()[index + 1]);
            intercept += per_value * centre;
            weights.push(if scale == 0.0 { 0.0 } else { per_value / scale });
        }
        let (scale, centre) = (encoding.scale()[0], encoding.centre()[0]);
        weights[0] = intercept / (scale * (1.0 - centre));
        weights
    }

    /// Log-odds of the last class for one row of raw columns, as [`Coding::raw_columns`] gives them (the intercept first).
    #[must_use]
    pub fn score(&self, raw_columns: &[f64]) -> f64 {
        let products =
            raw_columns[1..].iter().zip(&self.coefficients).map(|(value, column)| value * column.coefficient);
        self.intercept + products.sum::<f64>()
    }

    /// Probability of the last class.
    #[must_use]
    pub fn probability(&self, raw_columns: &[f64]) -> f64 {
        1.0 / (1.0 + (-self.score(raw_columns)).exp())
    }

    /// Reads a model file.
    ///
    /// # Errors
    /// [`ModelError`] when it is not one, or one of another version.
    pub fn from_json(text: &str) -> Result<Self, ModelError> {
        #[derive(Deserialize)]
        struct Document {
            classes: Vec<String>,
            intercept: f64,
            coefficients: Vec<Coefficient>,
            schema: Schema,
            certificate: Option<Certificate>,
        }
        // Format and version first: another version may have other fields.
        let value: serde_json::Value = serde_json::from_str(text)?;
        let format = value.get("format").and_then(serde_json::Value::as_str).unwrap_or_default();
        if format != MODEL_FORMAT {
            return Err(ModelError::Format(format.chars().take(40).collect()));
        }
        let version = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or_default();
        if version != u64::from(MODEL_VERSION) {
            return Err(ModelError::Version(version));
        }
        let document: Document = serde_json::from_value(value)?;
        let coding = Coding::of(&document.schema);
        let names = coding.column_names().iter().skip(1);
        if !names.eq(document.coefficients.iter().map(|coefficient| &coefficient.column)) {
            return Err(ModelError::Inconsistent("its coefficients are not those of its schema".to_owned()));
        }
        let finite = document.coefficients.iter().all(|coefficient| coefficient.coefficient.is_finite());
        if !finite || !document.intercept.is_finite() {
            return Err(ModelError::Inconsistent("a coefficient is not a finite number".to_owned()));
        }
        if document.classes != class_names(&document.schema) || document.classes.len() != 2 {
            return Err(ModelError::Inconsistent("its classes are not the two of its schema".to_owned()));
        }
        Ok(Self {
            format: MODEL_FORMAT.to_owned(),
            version: MODEL_VERSION,
            task: "binary-classification".to_owned(),
            classes: document.classes,
            intercept: document.intercept,
            coefficients: document.coefficients,
            schema: document.schema,
            certificate: document.certificate,
        })
    }

    /// SHA-256 of the model file's text.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        Sha256::digest(self.to_json()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The model file's text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a model has only strings and finite numbers");
        text.push('\n');
        text
    }
}

/// Bounds of a numeric column in its own scale: as declared, or their symlog.
pub(crate) fn transformed_bounds(schema: &Schema, feature: usize, column: &Column) -> (f64, f64) {
    match (&schema.features()[feature].kind, column) {
        (FeatureKind::Numeric { low, high, .. }, Column::SymLog { .. }) => (symlog(*low), symlog(*high)),
        (FeatureKind::Numeric { low, high, .. }, _) => (*low, *high),
        (FeatureKind::Categorical { .. }, _) => unreachable!("only numeric features have numeric columns"),
    }
}

/// Names of the target's classes; none for a numeric target.
pub(crate) fn class_names(schema: &Schema) -> Vec<String> {
    match &schema.target().kind {
        TargetKind::Classes(classes) => classes.iter().map(|class| class.name.clone()).collect(),
        TargetKind::Bounds { .. } => Vec::new(),
    }
}
