//! The label holder's side of a question from another organisation: check, look the answer up, charge, draw, keep, answer.
//!
//! ```text
//!   weights (untrusted) ─▶ checked list ─▶ name ─▶ kept answer? ── yes ──▶ the same answer, nothing charged
//!                                            └── no ─▶ join labels ─▶ charge ─▶ draw ─▶ keep in the ledger ─▶ answer
//! ```
//! Labels that are numbers are counted by bin first, over their bounds and in the part that these counts say; their squares and the product are read
//! in the part of the bounds where they lie.
//! What the consumer could gain by lying is listed with the rule that prevents it in `docs/reference/walr-files.md`.

use std::path::Path;

use reticent_core::adjacency::{Adjacency, Relation};
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::encoding::LATTICE_NORM_MAX;
use reticent_core::label_query::{
    LABEL_RELEASE_FORMAT, LABEL_RELEASE_VERSION, LabelRelease, NOT_PROTECTED, PlannedAnswer, ReleasedNumbers,
    WeightList, canonical_name, number_questions, number_shares,
};
use reticent_core::label_use::LabelUse;
use reticent_core::ledger::{Budget, LedgerError, LedgerStore, PlannedRelease, Request};
use reticent_core::public_matrix::MATRIX_NORM_MAX;
use reticent_core::query::{COUNT_STEP, Map, NUMBER_BINS, ProductTarget, QueryError, QueryShape, SumQuery};
use reticent_core::record::{Label, RawValue};
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::session::{Session, SessionError};
use reticent_core::sum::Release;
use reticent_core::target_window::TargetWindow;
use reticent_core::units::{Delta, Epsilon, NoiseDistribution, NoiseScale};
use reticent_math::label_search::{LabelCounts, LabelSearch};
use reticent_math::range_search::BoundsPart;
use reticent_math::target_look::Look;

use crate::label_engine::LabelEngine;
use crate::ledger_file::{LedgerFile, LedgerFileError};
use crate::source::{Need, SourceError, TableSource};
use crate::table::code_label;

/// The label holder's own terms: none of them comes from the weights file.
#[derive(Clone, Copy, Debug)]
pub struct LabelTerms<'a> {
    /// Target, unit and cap, adjacency `label`, and how the table is written. Features, if any, are not read and need
    /// not be in the table.
    pub schema: &'a Schema,
    /// Column of the event ids.
    pub id_column: &'a str,
    /// Label of rows whose id is not in the table, as the table would spell it; the first class, or the mean of the numbers that are there as
    /// far as their bins tell it, if it is not given.
    pub unmatched: Option<&'a str>,
    /// Epsilon that this answer may cost.
    pub epsilon: Epsilon,
    /// Delta at which it is stated.
    pub delta: Delta,
    /// The labels' name in the ledger.
    pub data: &'a str,
}

/// An answer, ready to be sent.
#[derive(Clone, Debug)]
pub struct LabelAnswer {
    /// The release file's text, byte for byte as the ledger keeps it.
    pub text: String,
    /// Whether it was kept from an earlier, equal question: then nothing was charged.
    pub repeated: bool,
}

/// A question that is not answered. What is said depends on the weights file, the terms, the ledger and the disk, and never
/// on a label.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The schema promises more than is possible where features are known to others.
    #[error(
        "the schema protects {0}, and weights from another organisation can be answered under adjacency label only: \
         write adjacency = \"label\" under [privacy]"
    )]
    Adjacency(Relation),
    /// A default that is no label.
    #[error("{0:?} cannot be the label of unmatched ids: it is none of the schema's classes and within no bounds")]
    Unmatched(String),
    /// More rows than the schema allows.
    #[error("the weights file has {rows} rows and the schema allows {rows_max}; raise rows_max under [privacy]")]
    Rows {
        /// Rows of the weights file.
        rows: usize,
        /// The schema's maximum.
        rows_max: u64,
    },
    /// Sums could pass what 64-bit tools read.
    #[error("a sum of so many weights of this size could pass 2^62; ask for smaller weights or fewer rows")]
    Overflow,
    /// Epsilon too small for any noise that the sampler draws.
    #[error("epsilon is too small: the noise would pass 2^60 steps; grant more, or ask for shorter rows of weights")]
    TooSmall,
    /// The question is of a size that is not supported.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The labels cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The ledger cannot be used.
    #[error(transparent)]
    LedgerFile(#[from] LedgerFileError),
    /// Not admitted, or the release failed.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Plans the answer: size, sensitivity and noise from the integers and the label holder's terms alone.
///
/// ```text
///   mu² = (hi - lo)² B2 m² / S² (twice that with an output a class)    B2: largest square of a row's norm, in integers
///   S: smallest integer scale within the mu of (epsilon, delta)        m: cap on the rows of a unit
///   numbers:  shares of mu² for two counts by bin and the sum of their squares, the rest for the product: row F183
/// ```
/// Source: rows F2 and F80 of `docs/formulas.md`.
///
/// # Errors
/// [`MeasureError`].
pub fn plan(list: &WeightList, terms: &LabelTerms<'_>) -> Result<PlannedAnswer, MeasureError> {
    let schema = terms.schema;
    let relation = schema.relation();
    if relation.adjacency != Adjacency::Label {
        return Err(MeasureError::Adjacency(relation));
    }
    let matrix = list.matrix();
    if matrix.rows() as u64 > schema.privacy().rows_max {
        return Err(MeasureError::Rows { rows: matrix.rows(), rows_max: schema.privacy().rows_max });
    }
    let (target, outputs, label_low, label_high) = match &schema.target().kind {
        TargetKind::Bounds { .. } => {
            (ProductTarget::Number, 1, -i32::from(LATTICE_NORM_MAX), i32::from(LATTICE_NORM_MAX))
        }
        TargetKind::Classes(classes) if classes.len() > 2 => (ProductTarget::Class, classes.len() as u32, 0, 1),
        TargetKind::Classes(_) => (ProductTarget::Class, 1, 0, 1),
    };
    if !list.fits_62_bits(label_high.unsigned_abs()) {
        return Err(MeasureError::Overflow);
    }
    let map = Map::MatrixProduct {
        columns: matrix.columns() as u32,
        outputs,
        target,
        label_low,
        label_high,
        rows: matrix.rows() as u64,
        row_norm_square: matrix.row_norm_square(),
        // No bound for parties: this answer is about labels of units.
        eigenvalue: 0,
    };
    let release = |purpose: &str, map, share| -> Result<PlannedRelease, MeasureError> {
        let shape = QueryShape::new(map, relation.unit.clone(), schema.privacy().rows_max)?;
        let sensitivity = shape.sensitivity(&relation).ok_or(MeasureError::TooSmall)?;
        let noise_scale = NoiseScale::smallest_within(sensitivity, share).ok_or(MeasureError::TooSmall)?;
        let noise = NoiseDistribution::RoundedGaussian;
        Ok(PlannedRelease { purpose: purpose.to_owned(), shape, noise_scale, noise, times: 1 })
    };
    let mut left = Budget { epsilon: terms.epsilon, delta: terms.delta }.mu_squared_down();
    let mut of_numbers = Vec::new();
    if target == ProductTarget::Number {
        let (shares, rest) = number_shares(left, matrix.rows() as f64, &relation.unit);
        left = rest;
        let bins = |look: Look| -> Result<u32, MeasureError> {
            // What one label moves is the same with few bins and with many.
            let map = Map::LabelsByBin { bins: NUMBER_BINS.0 };
            let noise_scale = release("labels by bin", map, look.of([shares[0], shares[1]]))?.noise_scale;
            Ok(look.bins(noise_scale.get() as f64 / COUNT_STEP as f64 / matrix.rows() as f64, true))
        };
        let questions = number_questions([bins(Look::OverBounds)?, bins(Look::InPart)?]);
        for ((purpose, map), share) in questions.into_iter().zip(shares) {
            of_numbers.push(release(purpose, map, share)?);
        }
    }
    Ok(PlannedAnswer { of_numbers, product: release("labels times public weights", map, left)? })
}

/// Asks the planned questions, paid by `request`: what is found of numbers, and the noisy product.
///
/// # Errors
/// [`SessionError`]; what was charged stays charged.
pub fn ask(
    list: &WeightList,
    planned: &PlannedAnswer,
    session: &mut Session<'_>,
    request: &Request,
) -> Result<(Option<ReleasedNumbers>, Release), SessionError> {
    let matrix = list.matrix();
    let mut grants = session.pay(request)?.into_iter();
    let mut release = |planned: &PlannedRelease, window| {
        let question = SumQuery::of_matrix_in(planned.shape.clone(), matrix.clone(), window);
        let grant = grants.next().expect("the request pays for each release");
        session.release(grant, &question.expect("planned for this list"))
    };
    let mut window = TargetWindow::BOUNDS;
    let mut numbers = None;
    if let [over_bounds, in_part, square] = &planned.of_numbers[..] {
        let unit = f64::from(MATRIX_NORM_MAX) * f64::from(LATTICE_NORM_MAX);
        let product_noise = planned.product.noise_scale.get() as f64 / unit;
        let column_squares = matrix.column_squares();
        let search = LabelSearch { rows: matrix.rows(), column_squares: &column_squares, product_noise };
        let found = search.find(|look, BoundsPart { centre, half }| {
            let window = TargetWindow::new(centre, half);
            let counted = release(look.of([over_bounds, in_part]), window)?;
            let part = BoundsPart { centre: window.centre(), half: window.half() };
            Ok::<_, SessionError>(LabelCounts { part, bins: counted.values(), noise: counted.noise_standard_deviation })
        })?;
        window = TargetWindow::new(found.part.centre, found.part.half).with_missing(found.mean);
        numbers = Some(ReleasedNumbers { window, square: release(square, window)?.integers[0].to_string() });
    }
    Ok((numbers, release(&planned.product, window)?))
}

/// Answers a list of weights from a table of labels.
///
/// Guarantee: what is returned is `mu`-GDP in the labels of one unit with the `mu` that the ledger was charged, and the
/// same text for an equal question, however often it is asked. The ledger is the label set: all versions of the labels and
/// all who ask must be charged to one.
/// Order: kept answer, if there is one, once nobody else is making it; else admission, labels, charge, noise, answer kept on disk, answer returned.
///
/// # Errors
/// [`MeasureError`]. After the charge an answer may be lost to a full disk; it was then not seen by anybody.
pub fn measure(
    list: &WeightList,
    labels: &Path,
    terms: &LabelTerms<'_>,
    ledger: &mut LedgerFile,
    progress: &mut dyn FnMut(u64),
) -> Result<LabelAnswer, MeasureError> {
    let schema = terms.schema;
    let relation = schema.relation();
    let planned = plan(list, terms)?;
    let unmatched = unmatched_label(terms)?;
    let fingerprint = schema.fingerprint();
    let query = canonical_name(list, ledger.id(), &fingerprint, unmatched, &relation, &planned);
    // A consumer that gave up waiting asks again while the first question is under way: it is to be answered once.
    let _alone = ledger.alone_in_answering();
    if let Some(text) = ledger.kept_answer(&query)? {
        return Ok(LabelAnswer { text, repeated: true });
    }
    let request = Request {
        purpose: "walr measure".to_owned(),
        data: terms.data.to_owned(),
        schema: fingerprint.clone(),
        labels: Some(LabelUse::of_labels_alone(schema)),
        table: Some(schema.table().as_read()),
        releases: planned.releases(),
    };
    // A refusal comes before any label is read, so that not even its time can depend on one.
    let account = ledger.account().map_err(SessionError::from)?;
    account.may_admit(&relation, &request).map_err(|refusal| SessionError::from(LedgerError::from(refusal)))?;

    let source = TableSource::open_with_ids(labels, schema, Need::Target, terms.id_column)?;
    let engine = LabelEngine::join(source, schema, list, unmatched, progress)?;
    let mut session = Session::open(&engine, ledger, relation.clone())?;
    let (numbers, released) = ask(list, &planned, &mut session, &request)?;
    drop(session);

    let entry = ledger.last_entry().expect("the request was paid through this ledger").entry;
    let release = LabelRelease {
        format: LABEL_RELEASE_FORMAT.to_owned(),
        version: LABEL_RELEASE_VERSION,
        not_protected: NOT_PROTECTED.to_owned(),
        relation,
        epsilon: terms.epsilon,
        delta: terms.delta,
        query: query.clone(),
        label_set: ledger.id().to_owned(),
        entry,
        schema: fingerprint,
        target_column: schema.target().column.clone(),
        target: schema.target().kind.clone(),
        unmatched,
        planned,
        numbers,
        integers: released.integers.iter().map(i128::to_string).collect(),
    };
    let mut text = serde_json::to_string_pretty(&release).expect("a release is text and finite numbers");
    text.push('\n');
    // Kept before it is sent.
    let text = ledger.keep_answer(&query, entry, &text)?;
    Ok(LabelAnswer { text, repeated: false })
}

/// The label, in code, of rows whose id is not known: the first class, or no number, which counts as the mean of the others. The middle of the bounds, or of
/// the window, may lie far from all labels, and a few rows there would move everything.
fn unmatched_label(terms: &LabelTerms<'_>) -> Result<CodedLabel, MeasureError> {
    let target = &terms.schema.target().kind;
    let Some(text) = terms.unmatched else {
        return Ok(match target {
            TargetKind::Classes(_) => 0,
            TargetKind::Bounds { .. } => UNUSABLE_LABEL,
        });
    };
    let label = terms.schema.target_reader().label(RawValue::Text(text.as_bytes()));
    let coded = match (label, target) {
        // A label of a row is cut at the bounds; a label that is named beyond them is a mistake.
        (Label::Value(_), TargetKind::Bounds { low, high })
            if !text.trim().parse::<f64>().is_ok_and(|value| (*low..=*high).contains(&value)) =>
        {
            UNUSABLE_LABEL
        }
        (Label::Class(_) | Label::Value(_), _) => code_label(target, label),
        (Label::Unusable, _) => UNUSABLE_LABEL,
    };
    if coded == UNUSABLE_LABEL { Err(MeasureError::Unmatched(text.to_owned())) } else { Ok(coded) }
}
