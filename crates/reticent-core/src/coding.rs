//! What is stored for a row: a few 16-bit codes, made of its cells by the schema alone.
//!
//! ```text
//! cells ──Coding──▶ codes (u16 a slot, then those of the listed columns)
//! ```
//!
//! The map is public and pure: what it makes of a row depends on that row alone. Codes are kept because a method may
//! [encode](crate::encoding) the same rows again once it has bought a better centre or scale.

use serde::{Deserialize, Serialize};

use crate::listed_columns::ListedColumns;
use crate::record::Cell;
use crate::schema::{Feature, FeatureKind, OTHER, Schema};

/// The schema's public map from cells to codes, and the meaning of every encoded column.
#[derive(Clone, Debug, PartialEq)]
pub struct Coding {
    slots: Vec<SlotMap>,
    columns: Vec<Column>,
    names: Vec<String>,
    listed: Option<ListedColumns>,
}

impl Coding {
    /// Derives codes and columns from the schema: the intercept first, then each feature in the schema's order, those that rows
    /// list ([`Schema::nonzeros_max`]) after the others.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        let mut coding = Self {
            slots: Vec::new(),
            columns: vec![Column::Intercept],
            names: vec!["(intercept)".to_owned()],
            listed: None,
        };
        let most = schema.nonzeros_max();
        let (listed, others): (Vec<_>, Vec<_>) = schema
            .features()
            .iter()
            .enumerate()
            .partition(|(_, declared)| most.is_some() && declared.kind.may_be_listed());
        for (feature, declared) in others {
            coding.append(feature, declared);
        }
        if let Some(most) = most {
            let first_column = coding.columns.len();
            let mut highs = Vec::with_capacity(listed.len());
            for (feature, declared) in &listed {
                let FeatureKind::Numeric { high, .. } = declared.kind else { unreachable!("numbers alone are listed") };
                highs.push(high);
                coding.columns.push(Column::Linear { feature: *feature });
                coding.names.push(declared.name.clone());
            }
            let features: Vec<usize> = listed.into_iter().map(|(feature, _)| feature).collect();
            let most = (most as usize).min(features.len());
            coding.listed = Some(ListedColumns { first_column, features, highs, most });
        }
        coding
    }

    fn append(&mut self, feature: usize, declared: &Feature) {
        match &declared.kind {
            FeatureKind::Numeric { low, high, log, missing } => {
                let code = number_code(*missing, *low, high - low);
                let is_missing_open = missing.to_bits() == FeatureKind::missing_default(*low, *high).to_bits();
                self.slots.push(SlotMap::Linear {
                    feature,
                    low: *low,
                    span: high - low,
                    missing: code,
                    is_missing_open,
                });
                self.columns.push(Column::Linear { feature });
                self.names.push(declared.name.clone());
                if *log {
                    let (low, high) = (symlog(*low), symlog(*high));
                    let code = number_code(symlog(*missing), low, high - low);
                    self.slots.push(SlotMap::SymLog { feature, low, span: high - low, missing: code });
                    self.columns.push(Column::SymLog { feature });
                    self.names.push(format!("symlog({})", declared.name));
                }
            }
            FeatureKind::Categorical { categories, .. } => {
                let spellings = std::iter::once(OTHER).chain(categories.iter().map(String::as_str));
                self.append_block(feature, spellings.map(|spelling| format!("{}={spelling}", declared.name)));
            }
            FeatureKind::Hashed { buckets } => {
                let missing = std::iter::once(format!("{}=missing", declared.name));
                let named = (1..=*buckets).map(|bucket| format!("{}=#{bucket}", declared.name));
                self.append_block(feature, missing.chain(named));
            }
        }
    }

    /// One column a category.
    fn append_block(&mut self, feature: usize, names: impl Iterator<Item = String>) {
        let first_column = self.columns.len();
        for (category, name) in names.enumerate() {
            let category = u16::try_from(category).expect("a schema caps the categories of a feature");
            self.columns.push(Column::Category { feature, category });
            self.names.push(name);
        }
        self.slots.push(SlotMap::Category { feature, first_column, categories: self.columns.len() - first_column });
    }

    /// Number of slots, each of which has one code.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Number of codes a row: one a slot, then those of the listed columns.
    #[must_use]
    pub fn codes(&self) -> usize {
        self.slots.len() + self.listed.as_ref().map_or(0, ListedColumns::codes)
    }

    /// The columns that a row lists where they are not 0; none where every column has a slot.
    #[must_use]
    pub fn listed(&self) -> Option<&ListedColumns> {
        self.listed.as_ref()
    }

    /// The codes of a row's slots, and those of its list.
    #[inline(always)]
    #[must_use]
    pub fn slots_and_list<'a>(&self, codes: &'a [u16]) -> (&'a [u16], &'a [u16]) {
        codes.split_at(self.slots.len())
    }

    /// Meaning of the encoded columns, the intercept first.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Names of the encoded columns for a person, for example `workclass=Private`.
    #[must_use]
    pub fn column_names(&self) -> &[String] {
        &self.names
    }

    /// Whether each slot, in order, is numeric or has a number of categories.
    pub fn slot_kinds(&self) -> impl Iterator<Item = SlotKind> {
        self.slots.iter().map(|slot| match slot {
            SlotMap::Linear { .. } | SlotMap::SymLog { .. } => SlotKind::Numeric,
            SlotMap::Category { categories, .. } => SlotKind::Categories(*categories),
        })
    }

    /// What [`crate::query::Map::Marginals`] asks of the codes of a row, in order: each slot, and as a number the size of its
    /// list, where it has one.
    pub fn marginal_kinds(&self) -> impl Iterator<Item = SlotKind> {
        self.slot_kinds().chain(self.listed.iter().map(|_| SlotKind::Numeric))
    }

    /// How the code of each slot is made, in order.
    pub fn slot_maps(&self) -> impl Iterator<Item = SlotMap> {
        self.slots.iter().copied()
    }

    /// Codes one row. `cells` has one cell a feature in the schema's order, `codes` has [`Coding::codes`] places.
    ///
    /// # Panics
    /// When the lengths do not fit, or a cell is of another kind than its feature: mistakes of the caller's code, not
    /// of the data.
    pub fn encode_cells(&self, cells: &[Cell], codes: &mut [u16]) {
        assert_eq!(codes.len(), self.codes(), "one row of codes");
        let (codes, list) = codes.split_at_mut(self.slots.len());
        for (code, slot) in codes.iter_mut().zip(&self.slots) {
            *code = slot.code(&cells[slot.feature()]);
        }
        if let Some(listed) = &self.listed {
            let code = |(place, feature): (usize, &usize)| (place, listed.code(place, &cells[*feature]));
            listed.write(listed.features.iter().enumerate().map(code), list);
        }
    }

    /// The code of one slot, made of the cell of its feature.
    ///
    /// # Panics
    /// When there is no such slot, or the cell is of another kind than the feature: mistakes of the caller's code.
    #[must_use]
    pub fn slot_code(&self, slot: usize, cell: &Cell) -> u16 {
        self.slots[slot].code(cell)
    }

    /// Writes the columns of a row in the user's units: the intercept 1, numerics as they are (clamped into their bounds
    /// by the schema already), their symlog, one 1 in each block. For scoring rows that their owner wants scored.
    ///
    /// # Panics
    /// When the lengths do not fit.
    pub fn raw_columns(&self, cells: &[Cell], columns: &mut [f64]) {
        let first_listed = self.listed.as_ref().map_or(self.columns.len(), ListedColumns::first_column);
        let (placed, listed_columns) = columns.split_at_mut(first_listed);
        placed.fill(0.0);
        self.for_each_raw_placed(cells, |column, value| placed[column] = value);
        for (column, feature) in listed_columns.iter_mut().zip(self.listed.iter().flat_map(ListedColumns::features)) {
            if let Cell::Number(value) = cells[*feature] {
                *column = value;
            }
        }
    }

    /// Calls `visit` with place and value of the same columns, ascending, but for those that rows list, and the zeros of blocks.
    ///
    /// # Panics
    /// When there are not as many cells as features.
    pub fn for_each_raw_placed(&self, cells: &[Cell], mut visit: impl FnMut(usize, f64)) {
        visit(0, 1.0);
        let mut next_column = 1;
        for slot in &self.slots {
            match (slot, &cells[slot.feature()]) {
                (SlotMap::Linear { .. }, Cell::Number(value)) => {
                    visit(next_column, *value);
                    next_column += 1;
                }
                (SlotMap::SymLog { .. }, Cell::Number(value)) => {
                    visit(next_column, symlog(*value));
                    next_column += 1;
                }
                (SlotMap::Category { first_column, categories, .. }, Cell::Category(category)) => {
                    let category = *category as usize;
                    visit(first_column + if category < *categories { category } else { 0 }, 1.0);
                    next_column += categories;
                }
                (SlotMap::Linear { .. } | SlotMap::SymLog { .. }, Cell::Category(_))
                | (SlotMap::Category { .. }, Cell::Number(_)) => {
                    unreachable!("a cell is made by the feature that it belongs to")
                }
            }
        }
    }

    /// Writes the real columns of a coded row: the intercept 1, numerics in `[0, 1]`, one 1 in each block.
    ///
    /// # Panics
    /// When the lengths do not fit.
    pub fn expand<N: UnitNumber>(&self, codes: &[u16], columns: &mut [N]) {
        columns.fill(N::of_code(0));
        columns[0] = N::of_code(CODE_MAX);
        let mut next_column = 1;
        for (code, slot) in codes.iter().zip(&self.slots) {
            match slot {
                SlotMap::Linear { .. } | SlotMap::SymLog { .. } => {
                    columns[next_column] = N::of_code(*code);
                    next_column += 1;
                }
                SlotMap::Category { first_column, categories, .. } => {
                    columns[first_column + usize::from(*code)] = N::of_code(CODE_MAX);
                    next_column += categories;
                }
            }
        }
        if let Some(listed) = &self.listed {
            // The places that a row does not use are those of the first column with a number of 0.
            for (column, code) in listed.numbers(&codes[self.slots.len()..]).filter(|(_, code)| *code > 0) {
                columns[column] = N::of_code(code);
            }
        }
    }
}

/// A number in `[0, 1]`: itself, or the code that stands for it.
pub trait UnitNumber: Copy {
    /// What a code stands for.
    fn of_code(code: u16) -> Self;

    /// The nearest code there is.
    fn code(self) -> u16;
}

impl UnitNumber for f64 {
    fn of_code(code: u16) -> Self {
        Self::from(code) / Self::from(CODE_MAX)
    }

    fn code(self) -> u16 {
        ((self * Self::from(CODE_MAX)).round() as u16).min(CODE_MAX)
    }
}

impl UnitNumber for u16 {
    fn of_code(code: u16) -> Self {
        code
    }

    fn code(self) -> u16 {
        self
    }
}

/// A slot: how one 16-bit code of a row is made from its feature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlotMap {
    /// [`number_code`] of the feature's number itself.
    Linear {
        /// Position of the feature in the schema.
        feature: usize,
        /// Lower bound.
        low: f64,
        /// Upper bound less lower bound.
        span: f64,
        /// The code of a missing value.
        missing: u16,
        /// Whether the schema leaves open what a missing value becomes.
        is_missing_open: bool,
    },
    /// Of the feature's number after [`symlog`].
    SymLog {
        /// Position of the feature in the schema.
        feature: usize,
        /// Lower bound after [`symlog`].
        low: f64,
        /// The same of the upper bound, less that.
        span: f64,
        /// The code of a missing value.
        missing: u16,
    },
    /// The index of the feature's category.
    Category {
        /// Position of the feature in the schema.
        feature: usize,
        /// The encoded column of category 0; those of the others follow it.
        first_column: usize,
        /// Number of categories, "other" among them.
        categories: usize,
    },
}

impl SlotMap {
    /// Position of the slot's feature in the schema.
    #[must_use]
    pub fn feature(self) -> usize {
        match self {
            Self::Linear { feature, .. } | Self::SymLog { feature, .. } | Self::Category { feature, .. } => feature,
        }
    }

    #[inline]
    fn code(&self, cell: &Cell) -> u16 {
        match (self, cell) {
            (Self::Linear { low, span, .. }, Cell::Number(value)) => number_code(*value, *low, *span),
            (Self::SymLog { low, span, .. }, Cell::Number(value)) => number_code(symlog(*value), *low, *span),
            (Self::Category { categories, .. }, Cell::Category(category)) => {
                let category = *category as usize;
                if category < *categories { category as u16 } else { 0 }
            }
            (Self::Linear { .. } | Self::SymLog { .. }, Cell::Category(_))
            | (Self::Category { .. }, Cell::Number(_)) => {
                unreachable!("a cell is made by the feature that it belongs to")
            }
        }
    }
}

/// What a slot of a row's codes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// `0..=CODE_MAX`, one column.
    Numeric,
    /// The index of a category, "other" first, out of this many; one column each.
    Categories(usize),
}

/// What one encoded column means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Column {
    /// The constant 1.
    Intercept,
    /// `(x - low) / (high - low)` of a numeric feature.
    Linear {
        /// Position of the feature in the schema.
        feature: usize,
    },
    /// The same of `symlog(x) = sign(x) ln(1 + |x|)`, with the bounds mapped likewise.
    SymLog {
        /// Position of the feature in the schema.
        feature: usize,
    },
    /// 1 where a categorical feature has this category, else 0. Category 0 is the public "other", of a hashed feature a missing
    /// value.
    Category {
        /// Position of the feature in the schema.
        feature: usize,
        /// Index of the category: 0 for "other", then in declared order.
        category: u16,
    },
}

impl Column {
    /// Whether it is that of a numeric feature.
    #[must_use]
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Linear { .. } | Self::SymLog { .. })
    }
}

/// `sign(x) ln(1 + |x|)`: a logarithm that is defined everywhere.
#[must_use]
pub fn symlog(x: f64) -> f64 {
    x.signum() * x.abs().ln_1p()
}

/// Largest code of a numeric slot: bounds `[low, high]` map onto `0..=CODE_MAX`.
pub const CODE_MAX: u16 = 32_767;

/// `round(CODE_MAX (value - low) / span)`, never outside `0..=CODE_MAX`; 0 for a value that is not a number.
#[inline(always)]
#[must_use]
pub fn number_code(value: f64, low: f64, span: f64) -> u16 {
    let place = (value - low) / span * f64::from(CODE_MAX) + 0.5;
    // What is not a number fails the comparison.
    let place = if place > 0.0 { place } else { 0.0 };
    let place = if place < f64::from(CODE_MAX) { place } else { f64::from(CODE_MAX) };
    floor_code(place)
}

/// The integer part of a number in `0..=u16::MAX`.
///
/// What `number as u16` says, without the conversion: compilers make no vector instructions of one that saturates.
#[inline(always)]
pub(crate) fn floor_code(number: f64) -> u16 {
    /// From here to twice as much, floats are the whole numbers, and their last bits count them.
    const WHOLE: f64 = (1u64 << 52) as f64;
    let nearest = number + WHOLE;
    let below = if nearest - WHOLE > number { nearest - 1.0 } else { nearest };
    below.to_bits() as u16
}
