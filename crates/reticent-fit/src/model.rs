//! A fitted model: coefficients in the user's units, with the certificate of what they reveal.

use std::ops::Range;

use reticent_core::coding::{CODE_MAX, Coding, Column, SlotMap, symlog};
use reticent_core::encoding::{CodeRange, Encoding, NormRule};
use reticent_core::hex::hex;
use reticent_core::label_query::NOT_PROTECTED;
use reticent_core::schema::{FeatureKind, Schema, TargetKind};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::certificate::Certificate;
use crate::plan::{USABLE_LABELS_PUBLIC, public_of_schema};
use crate::prepared_fit::Fitted;
use crate::raw_columns::Columns;
use crate::softmax::softmax;

/// Version of the model file that this software writes and reads.
const MODEL_VERSION: u32 = 3;

const MODEL_FORMAT: &str = "reticent-model";

/// The largest model file that is read, in bytes: about a million coefficients.
pub const MODEL_BYTES_MAX: u64 = 128 << 20;

/// Bytes of a coefficient in a model file besides the column's name: indents, keys and a number of 25 characters.
const COEFFICIENT_BYTES: usize = 100;

/// Bytes more of a number that is read within a range: four numbers and their keys.
const READING_BYTES: usize = 250;

/// What a model predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// The probability of the last of two classes: logistic regression.
    BinaryClassification,
    /// The probability of each of more than two classes: multinomial logistic (softmax) regression.
    MulticlassClassification,
    /// A number: linear regression.
    Regression,
}

impl Task {
    /// The task that a schema's target asks for.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        match &schema.target().kind {
            TargetKind::Classes(classes) if classes.len() == 2 => Self::BinaryClassification,
            TargetKind::Classes(_) => Self::MulticlassClassification,
            TargetKind::Bounds { .. } => Self::Regression,
        }
    }
}

/// A linear, logistic or multinomial logistic regression, as it is written to disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    format: String,
    version: u32,
    /// What it predicts.
    pub task: Task,
    /// Names of the classes; none for a regression.
    pub classes: Vec<String>,
    /// One linear form for a number or for the last of two classes, else one a class.
    pub outputs: Vec<Output>,
    /// Everything that was declared public about the table.
    pub schema: Schema,
    /// The public rows that the model was fitted to, where it was fitted without privacy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_data: Option<PublicData>,
    /// What released figures say against the model, where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// What the model reveals and why. `None` marks a model that was fitted without privacy, to public data.
    pub certificate: Option<Certificate>,
}

/// A file whose rows somebody declared public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicData {
    /// Its name without the folder.
    pub file: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// A linear form of the user's columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The class whose score it is; `None` for a regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Value where every coefficient's column is zero.
    pub intercept: f64,
    /// Standard error of the intercept, sampling and noise together, where the method knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// One coefficient a column, in the order of the schema's coding without the intercept.
    pub coefficients: Vec<Coefficient>,
}

/// A coefficient of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// The column: `age`, `symlog(income)` or `workclass=Private`.
    pub column: String,
    /// Change of the score per unit of a numeric column, or where a category holds: in log-odds, or in units of the target.
    pub coefficient: f64,
    /// Standard error, sampling and noise together, where the method knows it: a 95 % interval is `± 1.96` of it. `None` of a column that was
    /// the same in all public rows, too, of which nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// Of a category: how far it is from the average of its feature, which is known far better than the coefficient itself, as what is added
    /// to all categories can be taken from the intercept. Where the method knows standard errors and how frequent categories are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_average: Option<FromAverage>,
    /// The lowest and the highest value of a numeric column that the model knows, in units of the column: values beyond count as the
    /// nearest of them. `None` where the method looks for no range, and all within the schema's bounds count as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Beside a range: what missing values count as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingNumber>,
}

/// What a missing number counts as, in units of its column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingNumber {
    /// What the schema makes of it.
    pub value: f64,
    /// What that counts as: the mean of the column, or that value as the range has it.
    pub counts_as: f64,
}

impl MissingNumber {
    /// Whether a value of the column is that of a missing one, but for rounding.
    fn is(self, value: f64) -> bool {
        (value - self.value).abs() <= ROUNDING * (self.counts_as - self.value).abs()
    }
}

/// Values are those of missing ones up to this share of what the two are apart.
const ROUNDING: f64 = 1e-9;

/// A category beside the mean coefficient of its feature's categories, each weighted by the share of the rows that the method took it to have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FromAverage {
    /// The coefficient less that mean.
    pub difference: f64,
    /// Standard error of the difference, sampling and noise together.
    pub standard_error: f64,
}

impl Coefficient {
    /// What a value of the column adds to the score.
    #[must_use]
    pub fn of(&self, value: f64) -> f64 {
        let read = match self.missing {
            Some(missing) if missing.is(value) => missing.counts_as,
            _ => self.range.map_or(value, |[low, high]| value.clamp(low, high)),
        };
        self.coefficient * read
    }
}

/// A model file that cannot be used.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Not JSON, or a field is missing or of the wrong type.
    #[error("this is not a model file: {0}; a model file is written by `reticent fit --out`")]
    Syntax(#[from] serde_json::Error),
    /// A schema, which belongs to another flag.
    #[error(
        "this looks like a schema, and is not a model file, which `reticent fit --out` writes; a schema is given with --schema"
    )]
    Schema,
    /// Another kind of document.
    #[error("this is not a model file: its format is {0:?}, not \"{MODEL_FORMAT}\"")]
    Format(String),
    /// Written by another version.
    #[error(
        "the model file has version {0}, and this program reads version {MODEL_VERSION}; use the program that wrote it"
    )]
    Version(u64),
    /// Coefficients do not belong to the schema, or the certificate claims less than its releases cost.
    #[error("the model file contradicts itself: {0}")]
    Inconsistent(String),
}

impl Model {
    /// Turns weights of encoded columns into coefficients of the user's columns.
    ///
    /// ```text
    ///   score = sum_j w_j scale_j (value_j - centre_j),   value = (x - low) / (high - low), its symlog form, or 0/1, in its range
    ///   a number = middle of the target's bounds + half their span · score
    ///   standard errors: sqrt(diag(J Cov J^T)), J the same linear map
    /// ```
    ///
    /// # Panics
    /// When there is not one weight a column and output.
    #[must_use]
    pub fn from_weights(schema: &Schema, fitted: &Fitted, certificate: Option<Certificate>) -> Self {
        let Fitted { encoding, weights, covariance } = fitted;
        let columns = encoding.coding().columns().len();
        let outputs = crate::method::outputs(schema);
        assert_eq!(weights.len(), columns * outputs, "one weight a column and output");
        let task = Task::of(schema);
        let (offset, unit) = target_scale(schema);
        let maps = column_maps(schema, encoding);
        let readings = column_readings(schema, encoding);
        let classes = class_names(schema);
        let output = |(index, weights): (usize, &[f64])| {
            // Covariance of the output's own weights.
            let spread = covariance.as_ref().map(|known| {
                let stride = columns * outputs;
                move |row: usize, column: usize| {
                    known.values[(index * columns + row) * stride + index * columns + column]
                }
            });
            let intercept: f64 = maps.iter().zip(weights).map(|(map, weight)| map.to_intercept * weight).sum();
            let of_intercept = spread.as_ref().map(|spread| {
                let term = |row: usize, column: usize| {
                    maps[row].to_intercept * spread(row, column) * maps[column].to_intercept
                };
                (0..columns)
                    .flat_map(|row| (0..columns).map(move |column| (row, column)))
                    .map(|(row, column)| term(row, column))
                    .sum::<f64>()
                    .max(0.0)
                    .sqrt()
                    * unit
            });
            let mut from_average: Vec<Option<FromAverage>> = vec![None; columns];
            if let (Some(spread), Some(known)) = (&spread, covariance) {
                for block in category_blocks(encoding.coding()) {
                    let scales: Vec<f64> = maps[block.clone()].iter().map(|map| map.to_coefficient * unit).collect();
                    let entry = |row: usize, column: usize| {
                        spread(block.start + row, block.start + column) * scales[row] * scales[column]
                    };
                    let of_block: Vec<f64> =
                        weights[block.clone()].iter().zip(&scales).map(|(weight, scale)| weight * scale).collect();
                    let shares = &known.column_means[block.clone()];
                    from_average[block.clone()].copy_from_slice(&beside_their_average(&of_block, shares, entry));
                }
            }
            let coefficients = (1..columns)
                .map(|column| Coefficient {
                    column: encoding.coding().column_names()[column].clone(),
                    coefficient: weights[column] * maps[column].to_coefficient * unit,
                    standard_error: spread
                        .as_ref()
                        .map(|spread| spread(column, column).max(0.0).sqrt() * maps[column].to_coefficient.abs() * unit)
                        .filter(|error| *error > 0.0),
                    from_average: from_average[column],
                    range: readings[column].map(|reading| reading.range),
                    missing: readings[column].map(|reading| reading.missing),
                })
                .collect();
            let class = match task {
                Task::Regression => None,
                Task::BinaryClassification => classes.last().cloned(),
                Task::MulticlassClassification => classes.get(index).cloned(),
            };
            Output { class, intercept: offset + unit * intercept, standard_error: of_intercept, coefficients }
        };
        let outputs = weights.chunks_exact(columns).enumerate().map(output).collect();
        Self {
            format: MODEL_FORMAT.to_owned(),
            version: MODEL_VERSION,
            task,
            classes,
            outputs,
            schema: schema.clone(),
            public_data: None,
            remark: None,
            certificate,
        }
    }

    /// Writes down what released figures say against the model.
    #[must_use]
    pub fn remarked(self, remark: Option<String>) -> Self {
        Self { remark, ..self }
    }

    /// Writes down which public rows the model was fitted to.
    #[must_use]
    pub fn fitted_to(self, public_data: PublicData) -> Self {
        Self { public_data: Some(public_data), ..self }
    }

    /// Weights of encoded columns that give the same scores, output after output: the inverse of [`Self::from_weights`].
    ///
    /// Columns whose scale is zero get weight zero.
    #[must_use]
    pub fn weights(&self, encoding: &Encoding) -> Vec<f64> {
        let (offset, unit) = target_scale(&self.schema);
        let maps = column_maps(&self.schema, encoding);
        let mut all = Vec::with_capacity(maps.len() * self.outputs.len());
        for output in &self.outputs {
            let mut intercept = (output.intercept - offset) / unit;
            let start = all.len();
            all.push(0.0);
            for (map, coefficient) in maps[1..].iter().zip(&output.coefficients) {
                let zero_scale = map.to_coefficient.abs() < f64::MIN_POSITIVE;
                let weight = if zero_scale { 0.0 } else { coefficient.coefficient / unit / map.to_coefficient };
                intercept -= weight * map.to_intercept;
                all.push(weight);
            }
            all[start] = intercept / maps[0].to_intercept;
        }
        all
    }

    /// Columns as the model reads them, on the lattice: numbers within their ranges, each of them from 0 to 1 there, and no row shortened.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        let coding = Coding::of(&self.schema);
        let columns = coding.columns().len();
        let (mut centre, mut scale) = (vec![0.0; columns], vec![1.0; columns]);
        let mut ranges = vec![CodeRange::BOUNDS; coding.slots()];
        let bound = Encoding::largest_norm(&coding, &centre, &scale);
        for NumericSlot { slot, column, low, span, missing, .. } in numeric_slots(&coding) {
            let one = &self.outputs[0].coefficients[column - 1];
            let Some(range) = one.range else { continue };
            let code = |value: f64| (((value - low) / span * f64::from(CODE_MAX)).round() as u16).min(CODE_MAX);
            let [low, high] = range.map(code);
            let high = high.max(low);
            ranges[slot] = CodeRange::new(low, high);
            if let Some(MissingNumber { counts_as, .. }) = one.missing {
                ranges[slot] = ranges[slot].with_missing(missing, code(counts_as).clamp(low, high));
            }
            let width = f64::from(high - low).max(1.0) / f64::from(CODE_MAX);
            (centre[column], scale[column]) = (f64::from(low) / f64::from(CODE_MAX), 1.0 / width);
        }
        Encoding::new(coding, centre, scale, NormRule::Clip(bound)).within(ranges)
    }

    /// Value of one output for one row of raw columns, as [`Coding::raw_columns`] gives them (the intercept first): log-odds
    /// of the last class, the score of a class, or a number.
    ///
    /// # Panics
    /// For another number of columns than the model has, or an output that it has not.
    #[must_use]
    pub fn score(&self, output: usize, raw_columns: &(impl Columns + ?Sized)) -> f64 {
        let output = &self.outputs[output];
        assert_eq!(raw_columns.count(), 1 + output.coefficients.len(), "columns of a row, the intercept first");
        let features = raw_columns.nonzero().filter(|(column, _)| *column > 0);
        let products = features.map(|(column, value)| output.coefficients[column - 1].of(value));
        output.intercept + products.sum::<f64>()
    }

    /// Probability of each class for one row of raw columns.
    ///
    /// # Panics
    /// For a regression, which has no classes, and as [`Self::score`].
    #[must_use]
    pub fn probabilities(&self, raw_columns: &(impl Columns + ?Sized)) -> Vec<f64> {
        match self.task {
            Task::BinaryClassification => {
                let score = self.score(0, raw_columns);
                vec![1.0 / (1.0 + score.exp()), 1.0 / (1.0 + (-score).exp())]
            }
            Task::MulticlassClassification => {
                let scores: Vec<f64> = (0..self.outputs.len()).map(|output| self.score(output, raw_columns)).collect();
                softmax(&scores)
            }
            Task::Regression => panic!("a regression has no classes"),
        }
    }

    /// Predicted number for one row of raw columns, within the target's bounds.
    ///
    /// # Panics
    /// For a model of classes, and as [`Self::score`].
    #[must_use]
    pub fn number(&self, raw_columns: &(impl Columns + ?Sized)) -> f64 {
        let TargetKind::Bounds { low, high } = self.schema.target().kind else {
            panic!("a model of classes predicts no number")
        };
        self.score(0, raw_columns).clamp(low, high)
    }

    /// Reads a model file.
    ///
    /// # Errors
    /// [`ModelError`] when it is not one, or one of another version.
    pub fn from_json(text: &str) -> Result<Self, ModelError> {
        #[derive(Deserialize)]
        struct Document {
            #[serde(rename = "format")]
            _format: IgnoredAny,
            #[serde(rename = "version")]
            _version: IgnoredAny,
            task: Task,
            classes: Vec<String>,
            outputs: Vec<Output>,
            schema: Schema,
            #[serde(default)]
            public_data: Option<PublicData>,
            #[serde(default)]
            remark: Option<String>,
            certificate: Option<Certificate>,
        }
        // Format and version first: another version may have other fields.
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(text);
        let value =
            parsed.map_err(|error| if looks_like_a_schema(text) { ModelError::Schema } else { error.into() })?;
        let format = value.get("format").and_then(serde_json::Value::as_str).unwrap_or_default();
        if format != MODEL_FORMAT {
            return Err(ModelError::Format(format.chars().take(40).collect()));
        }
        let version = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or_default();
        if version != u64::from(MODEL_VERSION) {
            return Err(ModelError::Version(version));
        }
        // From the text: of a key that is there twice, a value would have kept the last, and a person reads the first.
        let Document { task, classes, outputs, schema, public_data, remark, certificate, .. } =
            serde_json::from_str(text)?;
        let contradiction = |what: &str| Err(ModelError::Inconsistent(what.to_owned()));
        if task != Task::of(&schema) || classes != class_names(&schema) {
            return contradiction("its classes are not those of its schema");
        }
        let coding = Coding::of(&schema);
        let names = || coding.column_names().iter().skip(1);
        let fits = |output: &Output| names().eq(output.coefficients.iter().map(|one| &one.column));
        if outputs.len() != crate::method::outputs(&schema) || !outputs.iter().all(fits) {
            return contradiction("its coefficients are not those of its schema");
        }
        let finite = |output: &Output| {
            output.intercept.is_finite() && output.coefficients.iter().all(|one| one.coefficient.is_finite())
        };
        if !outputs.iter().all(finite) {
            return contradiction("a coefficient is not a finite number");
        }
        let numeric = numeric_slots(&coding);
        let is_numeric = |column: usize| numeric.iter().any(|slot| slot.column == column);
        for (place, one) in outputs[0].coefficients.iter().enumerate() {
            let is_range = |[low, high]: [f64; 2]| low.is_finite() && high.is_finite() && low <= high;
            if one.range.is_some_and(|range| !is_range(range) || !is_numeric(place + 1)) {
                return contradiction("a range is not one, or not one of numbers");
            }
            let is_beside = |FromAverage { difference, standard_error }: FromAverage| {
                difference.is_finite() && standard_error.is_finite() && standard_error >= 0.0 && !is_numeric(place + 1)
            };
            if outputs.iter().any(|output| !output.coefficients[place].from_average.is_none_or(is_beside)) {
                return contradiction("a difference from an average is not one, or not one of categories");
            }
            if outputs.iter().any(|output| output.coefficients[place].range != one.range) {
                return contradiction("classes read a column within different ranges");
            }
            let counts_within = |MissingNumber { counts_as, .. }: MissingNumber| {
                one.range.is_some_and(|[low, high]| (low..=high).contains(&counts_as))
            };
            let is_of_schema = |MissingNumber { value, .. }: MissingNumber| {
                let slot = numeric.iter().find(|slot| slot.column == place + 1);
                // Logarithms may differ by a last digit from one machine to the next.
                slot.is_some_and(|slot| (value - slot.missing_value(&schema)).abs() <= ROUNDING * slot.span)
            };
            if one.missing.is_some_and(|missing| !counts_within(missing) || !is_of_schema(missing)) {
                return contradiction("what a missing value counts as is not in its range, or not of its schema");
            }
            if outputs.iter().any(|output| output.coefficients[place].missing != one.missing) {
                return contradiction("classes read missing values of a column as different ones");
            }
        }
        if let Some(certificate) = &certificate {
            if let Err(what) = certificate.check() {
                return contradiction(what);
            }
            let of_labels_elsewhere = certificate.public.iter().any(|fact| fact == NOT_PROTECTED);
            let is_told = |fact: &String| {
                certificate.public.contains(fact) || of_labels_elsewhere && fact == USABLE_LABELS_PUBLIC
            };
            if !public_of_schema(&schema).iter().all(is_told) {
                return contradiction("its certificate leaves out what its schema takes as public");
            }
            // A label holder's certificate names the label holder's own schema.
            if !of_labels_elsewhere && certificate.schema != schema.fingerprint() {
                return contradiction("its certificate is about another schema than the one in it");
            }
        }
        let (format, version) = (MODEL_FORMAT.to_owned(), MODEL_VERSION);
        let model = Self { format, version, task, classes, outputs, schema, public_data, remark, certificate };
        // What nothing reads nothing checks: it could say of a claim what it likes.
        match first_unknown_key(&value, &serde_json::to_value(&model)?) {
            Some(key) => contradiction(&format!("no model has a {key:?}")),
            None => Ok(model),
        }
    }

    /// SHA-256 of the model file's text.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex(&Sha256::digest(self.to_json()))
    }

    /// The model file's text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a model has only strings and finite numbers");
        text.push('\n');
        text
    }
}

/// The first key of a document that a document like it lacks. What is `null` says nothing.
fn first_unknown_key<'v>(found: &'v serde_json::Value, known: &serde_json::Value) -> Option<&'v str> {
    use serde_json::Value;
    match (found, known) {
        (Value::Object(found), Value::Object(known)) => found.iter().find_map(|(key, value)| match known.get(key) {
            Some(known) => first_unknown_key(value, known),
            None if value.is_null() => None,
            None => Some(key.as_str()),
        }),
        (Value::Array(found), Value::Array(known)) => {
            found.iter().zip(known).find_map(|(found, known)| first_unknown_key(found, known))
        }
        _ => None,
    }
}

/// Whether a text has a section that every schema has, as a line.
fn looks_like_a_schema(text: &str) -> bool {
    text.lines().any(|line| ["[privacy]", "[target]"].contains(&line.trim()))
}

/// A model whose file would be too large to be read again.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "a model of {columns} encoded columns and {outputs} outputs would be a file of more than {} MiB, which is not read again; \
     list fewer categories or classes, or fewer hash buckets",
    MODEL_BYTES_MAX >> 20
)]
pub struct ModelSize {
    columns: usize,
    outputs: usize,
}

/// Refuses a schema of which no model can be kept.
pub(crate) fn check_size(schema: &Schema) -> Result<(), ModelSize> {
    if largest_file(schema) <= MODEL_BYTES_MAX {
        return Ok(());
    }
    Err(ModelSize { columns: schema.encoded_columns() + 1, outputs: crate::method::outputs(schema) })
}

/// Bytes that the file of a model with this schema may have, at most; standard errors, of which there are few, not counted.
fn largest_file(schema: &Schema) -> u64 {
    let in_json = |text: &str| serde_json::to_string(text).map_or(usize::MAX, |quoted| quoted.len());
    let coding = Coding::of(schema);
    let coefficients: usize = coding.column_names().iter().map(|name| in_json(name) + COEFFICIENT_BYTES).sum();
    let readings = READING_BYTES * numeric_slots(&coding).len();
    let schema_bytes = serde_json::to_string_pretty(schema).map_or(usize::MAX, |text| text.len());
    let of_output = coefficients + readings;
    (crate::method::outputs(schema) as u64).saturating_mul(of_output as u64).saturating_add(schema_bytes as u64)
}

/// What a weight of an encoded column adds to the intercept, and to the coefficient of the user's column.
struct ColumnMap {
    to_intercept: f64,
    to_coefficient: f64,
}

/// Columns of each feature with categories.
fn category_blocks(coding: &Coding) -> Vec<Range<usize>> {
    let mut blocks: Vec<(usize, Range<usize>)> = Vec::new();
    for (place, column) in coding.columns().iter().enumerate() {
        let Column::Category { feature, .. } = column else { continue };
        match blocks.last_mut() {
            Some((last, block)) if last == feature => block.end = place + 1,
            Some(_) | None => blocks.push((*feature, place..place + 1)),
        }
    }
    blocks.into_iter().map(|(_, block)| block).collect()
}

/// `b_k - sum_j p_j b_j` and its standard error, from coefficients `b` with this covariance and shares `p` up to a factor, all alike where none is
/// above 0: whether a model says so must not depend on what noise has made of them. Nothing where nothing is known of the category.
fn beside_their_average(
    coefficients: &[f64],
    shares: &[f64],
    covariance: impl Fn(usize, usize) -> f64,
) -> Vec<Option<FromAverage>> {
    let total: f64 = shares.iter().map(|share| share.max(0.0)).sum();
    let alike = 1.0 / coefficients.len() as f64;
    let shares: Vec<f64> =
        shares.iter().map(|share| if total > 0.0 { share.max(0.0) / total } else { alike }).collect();
    let mean: f64 = shares.iter().zip(coefficients).map(|(share, one)| share * one).sum();
    let with_mean: Vec<f64> = (0..coefficients.len())
        .map(|row| shares.iter().enumerate().map(|(column, share)| share * covariance(row, column)).sum())
        .collect();
    let of_mean: f64 = shares.iter().zip(&with_mean).map(|(share, one)| share * one).sum();
    let beside = |place: usize| {
        let own = covariance(place, place);
        let error = (own - 2.0 * with_mean[place] + of_mean).max(0.0).sqrt();
        (own > 0.0).then(|| FromAverage { difference: coefficients[place] - mean, standard_error: error })
    };
    (0..coefficients.len()).map(beside).collect()
}

fn column_maps(schema: &Schema, encoding: &Encoding) -> Vec<ColumnMap> {
    let shapes = encoding.scale().iter().zip(encoding.centre());
    let map = |(column, (scale, centre)): (&Column, (&f64, &f64))| match column {
        Column::Intercept => ColumnMap { to_intercept: scale * (1.0 - centre), to_coefficient: 0.0 },
        Column::Linear { feature } | Column::SymLog { feature } => {
            let (low, high) = transformed_bounds(schema, *feature, column);
            ColumnMap { to_intercept: -scale * (centre + low / (high - low)), to_coefficient: scale / (high - low) }
        }
        Column::Category { .. } => ColumnMap { to_intercept: -scale * centre, to_coefficient: *scale },
    };
    encoding.coding().columns().iter().zip(shapes).map(map).collect()
}

/// A slot of numbers, and the bounds of its column in the column's own scale.
struct NumericSlot {
    slot: usize,
    column: usize,
    low: f64,
    span: f64,
    /// The code of missing values.
    missing: u16,
    map: SlotMap,
}

impl NumericSlot {
    /// What the schema makes of a missing value, in the column's own scale.
    fn missing_value(&self, schema: &Schema) -> f64 {
        match (&schema.features()[self.map.feature()].kind, self.map) {
            (FeatureKind::Numeric { missing, .. }, SlotMap::SymLog { .. }) => symlog(*missing),
            (FeatureKind::Numeric { missing, .. }, _) => *missing,
            (FeatureKind::Categorical { .. } | FeatureKind::Hashed { .. }, _) => {
                unreachable!("only numeric features have numeric columns")
            }
        }
    }
}

/// The numeric slots of a coding, in order.
fn numeric_slots(coding: &Coding) -> Vec<NumericSlot> {
    let mut slots = Vec::new();
    let mut column = 1;
    for (slot, map) in coding.slot_maps().enumerate() {
        match map {
            SlotMap::Linear { low, span, missing, .. } | SlotMap::SymLog { low, span, missing, .. } => {
                slots.push(NumericSlot { slot, column, low, span, missing, map });
                column += 1;
            }
            SlotMap::Category { categories, .. } => column += categories,
        }
    }
    slots
}

/// How a column of numbers is read, in its units.
#[derive(Clone, Copy)]
struct ColumnReading {
    range: [f64; 2],
    missing: MissingNumber,
}

/// How each numeric column is read where ranges were looked for. Whether one was found decides nothing here: the form of a model file is
/// public before anything is released.
fn column_readings(schema: &Schema, encoding: &Encoding) -> Vec<Option<ColumnReading>> {
    let coding = encoding.coding();
    let mut columns = vec![None; coding.columns().len()];
    let Some(ranges) = encoding.ranges() else { return columns };
    for numbers in numeric_slots(coding) {
        let NumericSlot { slot, column, low, span, missing, .. } = numbers;
        let value_of = |code: u16| low + f64::from(code) / f64::from(CODE_MAX) * span;
        let range = [value_of(ranges[slot].low()), value_of(ranges[slot].high())];
        let value = numbers.missing_value(schema);
        let is_as_others = ranges[slot].of(missing) == missing.clamp(ranges[slot].low(), ranges[slot].high());
        let read = if is_as_others { value } else { value_of(ranges[slot].of(missing)) };
        let missing = MissingNumber { value, counts_as: read.clamp(range[0], range[1]) };
        columns[column] = Some(ColumnReading { range, missing });
    }
    columns
}

/// Middle of the target's bounds and half their span; 0 and 1 for classes.
fn target_scale(schema: &Schema) -> (f64, f64) {
    match schema.target().kind {
        TargetKind::Classes(_) => (0.0, 1.0),
        TargetKind::Bounds { low, high } => (low + (high - low) / 2.0, (high - low) / 2.0),
    }
}

/// Bounds of a numeric column in its own scale: as declared, or their symlog.
pub(crate) fn transformed_bounds(schema: &Schema, feature: usize, column: &Column) -> (f64, f64) {
    match (&schema.features()[feature].kind, column) {
        (FeatureKind::Numeric { low, high, .. }, Column::SymLog { .. }) => (symlog(*low), symlog(*high)),
        (FeatureKind::Numeric { low, high, .. }, _) => (*low, *high),
        (FeatureKind::Categorical { .. } | FeatureKind::Hashed { .. }, _) => {
            unreachable!("only numeric features have numeric columns")
        }
    }
}

/// Names of the target's classes; none for a numeric target.
pub(crate) fn class_names(schema: &Schema) -> Vec<String> {
    match &schema.target().kind {
        TargetKind::Classes(classes) => classes.iter().map(|class| class.name.clone()).collect(),
        TargetKind::Bounds { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `c'c` with `c = e_k - p`, by hand; what all categories share, here with a variance of 100, is in no difference.
    #[test]
    fn what_categories_share_is_not_in_their_differences() {
        let covariance = |row: usize, column: usize| 100.0 + if row == column { 1.0 } else { 0.0 };
        let beside = beside_their_average(&[1.0, 3.0, 8.0], &[2.0, 1.0, 1.0], covariance);
        for (found, (difference, variance)) in beside.iter().zip([(-2.25, 0.375f64), (-0.25, 0.875), (4.75, 0.875)]) {
            let found = found.expect("known");
            assert!((found.difference - difference).abs() < 1e-12, "{found:?}");
            assert!((found.standard_error - variance.sqrt()).abs() < 1e-9, "{found:?}");
        }
        let unknown = beside_their_average(&[1.0, 2.0], &[0.0, -1.0], covariance);
        let differences: Vec<f64> = unknown.iter().map(|one| one.expect("known").difference).collect();
        assert_eq!(differences, [-0.5, 0.5], "all as frequent");
    }
}
