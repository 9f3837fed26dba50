//! Private labels joined to a list of public rows: dense, one label for every row of the list, whether its id is known or not.

use std::collections::HashMap;

use reticent_core::adjacency::PrivacyUnit;
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::engine::{Engine, EngineError};
use reticent_core::label_query::WeightList;
use reticent_core::query::SumQuery;
use reticent_core::schema::Schema;
use reticent_core::sum::PartialSum;

use crate::out_of_memory::boxed;
use crate::source::{SourceError, TableSource};
use crate::table::code_label;

/// Labels in the order of a list's rows. Private: no `Debug`, and nothing tells how many ids were found.
pub struct LabelEngine {
    schema: String,
    unit: PrivacyUnit,
    labels: Vec<CodedLabel>,
}

/// A query that labels alone cannot answer.
#[derive(Debug, thiserror::Error)]
#[error("labels without features answer matrix products over the list that they were joined to, and nothing else")]
struct OtherQuestion;

impl LabelEngine {
    /// Joins a table of labels, opened with its event ids, to a list.
    ///
    /// The first row of an id counts. A row of the list gets the label `unmatched` when its id is not in the table, when the
    /// label or the unit's key cannot be used, and when its unit has its cap of rows earlier in the list. Whose a row is, and
    /// which rows are within the cap, depends on ids, units and the list alone, never on the value of a label.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read; never for what a row holds.
    pub fn join(
        source: TableSource,
        schema: &Schema,
        list: &WeightList,
        unmatched: CodedLabel,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, SourceError> {
        let unit = schema.privacy().unit.clone();
        let target = &schema.target().kind;
        // Room for every row of the list is taken before a label is read: it says nothing about the table.
        let mut joined: Vec<Option<(CodedLabel, Option<u32>)>> = vec![None; list.ids().len()];
        let units_max = match &unit {
            PrivacyUnit::Row => 0,
            PrivacyUnit::Column { .. } => list.ids().len(),
        };
        let mut units: HashMap<Box<[u8]>, u32> = HashMap::with_capacity(units_max);
        let mut rows_of_unit = vec![0u32; units_max];
        let mut fits = true;
        source.for_each_row(progress, &mut |row| {
            let Some(place) = row.id.and_then(|id| list.ids().place_of(id)) else { return };
            if joined[place].is_some() {
                return;
            }
            let label = code_label(target, row.label);
            let unit = row.unit.map(|key| {
                units.get(key).copied().unwrap_or_else(|| {
                    let next = units.len() as u32;
                    match boxed(key) {
                        Ok(key) => {
                            units.insert(key, next);
                        }
                        Err(_) => fits = false,
                    }
                    next
                })
            });
            joined[place] = Some((label, unit));
        })?;
        if !fits {
            return Err(SourceError::OutOfMemory);
        }
        let cap = unit.rows_max();
        let labels = joined.into_iter().map(|found| {
            let Some((label, unit)) = found else { return unmatched };
            let within = unit.is_none_or(|unit| {
                let rows = &mut rows_of_unit[unit as usize];
                *rows = rows.saturating_add(1);
                *rows <= cap
            });
            if within && label != UNUSABLE_LABEL { label } else { unmatched }
        });
        let labels = labels.collect();
        Ok(Self { schema: schema.fingerprint(), unit, labels })
    }
}

impl Engine for LabelEngine {
    fn unit(&self) -> &PrivacyUnit {
        &self.unit
    }

    fn schema(&self) -> &str {
        &self.schema
    }

    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError> {
        match query.matrix() {
            Some(matrix) if matrix.rows() == self.labels.len() => {
                let mut sum = PartialSum::zero(query);
                self.labels.iter().enumerate().for_each(|(row, label)| sum.add_label(query, row, *label));
                Ok(sum)
            }
            Some(_) | None => Err(EngineError(Box::new(OtherQuestion))),
        }
    }
}
