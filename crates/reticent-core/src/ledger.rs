//! The rules of the ledger: what a release costs, who is promised what, and when a request is refused.
//!
//! The owner of the data promises a set of [`Relation`]s. Every release is charged in *each* of them with its own
//! sensitivity, all at once or not at all; amounts of different relations are never added. The filter is the fully adaptive
//! one of Gaussian differential privacy: requests may depend on earlier answers as long as the sum of `mu²` stays within
//! the budget. Where the entries are kept is a [`LedgerStore`]'s business; that they are kept *before* noise is drawn is
//! [`crate::session::Session`]'s.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::account::gdp;
use crate::account::pure::{self, PureLoss};
use crate::adjacency::{Adjacency, PrivacyUnit, Relation};
use crate::label_use::LabelUse;
use crate::query::QueryShape;
use crate::schema::TableFormat;
use crate::units::{Delta, Epsilon, MuSquared, NoiseDistribution, NoiseScale};

/// A limit on what may be learnt about one unit, for as long as the ledger lives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Total epsilon at [`Self::delta`].
    pub epsilon: Epsilon,
    /// Delta at which epsilon is stated.
    pub delta: Delta,
}

impl Budget {
    /// The budget in the ledger's currency, rounded down.
    #[must_use]
    pub fn mu_squared_down(self) -> MuSquared {
        MuSquared::budget_down(gdp::mu_down(self.epsilon, self.delta))
    }
}

/// One kind of release of a fit: what is asked, how often, and with how much noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedRelease {
    /// What the answer is for, in a word or two: `gradient`, `row count`.
    pub purpose: String,
    /// Size and sensitivity of the query.
    pub shape: QueryShape,
    /// Scale of the noise, in lattice units.
    pub noise_scale: NoiseScale,
    /// Distribution of the noise.
    #[serde(default)]
    pub noise: NoiseDistribution,
    /// Number of answers of this kind.
    pub times: u32,
}

impl PlannedRelease {
    /// Price of all the answers under a relation, rounded up; `None` when it has no finite price there.
    ///
    /// ```text
    ///   rounded Gaussian:   mu² = times · B² / S²
    ///   discrete Laplace:   mu² = times · mu(B_1 / S)², mu(epsilon) = 2 Phi^-1(e^epsilon / (1 + e^epsilon))
    ///   a minimum:          the same, plus the price of its linear term each time
    /// ```
    /// Source: Dong, Roth, Su 2022 (arXiv:1905.02383), Thm 2.7 and Cor 3.3; rows F2 and F8 of `docs/formulas.md`.
    #[must_use]
    pub fn price_up(&self, relation: &Relation) -> Option<MuSquared> {
        let one = match self.noise {
            NoiseDistribution::RoundedGaussian => {
                MuSquared::price_up(self.shape.sensitivity(relation)?, self.noise_scale)?
            }
            NoiseDistribution::DiscreteLaplace => {
                let epsilon = self.shape.l1_sensitivity(relation)?.epsilon_up(self.noise_scale);
                MuSquared::charge_up(pure::mu_of_pure_up(Epsilon::new(epsilon).ok()?))?
            }
        };
        one.checked_add(self.shape.perturbation_price_up(relation)?)?.checked_mul(self.times)
    }

    /// Epsilon at delta 0 of all the answers under a relation, rounded up; `None` for Gaussian noise, which has none.
    #[must_use]
    pub fn pure_epsilon_up(&self, relation: &Relation) -> Option<f64> {
        match self.noise {
            NoiseDistribution::RoundedGaussian => None,
            // A Gaussian linear term has no pure epsilon either.
            NoiseDistribution::DiscreteLaplace
                if self.shape.perturbation_price_up(relation).is_none_or(|price| price > MuSquared::ZERO) =>
            {
                None
            }
            NoiseDistribution::DiscreteLaplace => {
                let one = Epsilon::new(self.shape.l1_sensitivity(relation)?.epsilon_up(self.noise_scale)).ok()?;
                PureLoss::of_times(one, self.times).map(PureLoss::get)
            }
        }
    }
}

/// What somebody wants to buy: written down as it is when it is charged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Who asks for what, for a person: `fit noisy-gd`.
    pub purpose: String,
    /// Name of the data, as the owner calls it.
    pub data: String,
    /// Fingerprint of the schema that bounds the rows.
    pub schema: String,
    /// The labels that it is about; entries of a ledger that were written before this was kept have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelUse>,
    /// How the table is read ([`TableFormat::as_read`]), and so which column a name means; early entries of a ledger have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableFormat>,
    /// Everything that will be released.
    pub releases: Vec<PlannedRelease>,
}

impl Request {
    /// Price of the whole request under a relation, rounded up.
    #[must_use]
    pub fn price_up(&self, relation: &Relation) -> Option<MuSquared> {
        self.releases.iter().try_fold(MuSquared::ZERO, |total, release| total.checked_add(release.price_up(relation)?))
    }

    /// How the table is read, where it is known: entries under label adjacency kept it with their labels before all kept it.
    #[must_use]
    pub fn table_as_read(&self) -> Option<TableFormat> {
        let of_labels = || self.labels.as_ref()?.usable.as_ref()?.table.as_ref();
        self.table.as_ref().or_else(of_labels).map(TableFormat::as_read)
    }
}

/// A promise to the units of the data, and what has been spent of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// The limit, or `None` while the owner has set none: spending is then only recorded.
    pub budget: Option<Budget>,
    /// Spent so far in every promised relation.
    pub spent: BTreeMap<Relation, MuSquared>,
    /// The labels that requests were about, each once; where no column is promised they need not be there.
    pub labels: Vec<LabelUse>,
    /// How requests read the table, each way once.
    pub tables: Vec<TableFormat>,
}

impl Account {
    /// An account that promises these relations, of which nothing is spent.
    #[must_use]
    pub fn promising(relations: impl IntoIterator<Item = Relation>, budget: Option<Budget>) -> Self {
        let spent = relations.into_iter().map(|relation| (relation, MuSquared::ZERO)).collect();
        Self { budget, spent, labels: Vec::new(), tables: Vec::new() }
    }

    /// Checks that the owner promises a relation.
    ///
    /// # Errors
    /// [`Refusal::NotPromised`] lists what is promised instead.
    pub fn check_promised(&self, claimed: &Relation) -> Result<(), Refusal> {
        if self.spent.contains_key(claimed) {
            return Ok(());
        }
        let promised = self.spent.keys().map(Relation::to_string).collect::<Vec<_>>().join(", ");
        Err(Refusal::NotPromised { claimed: claimed.clone(), promised })
    }

    /// Adds an admitted request to what is spent: the whole of a ledger that is kept in memory.
    ///
    /// # Errors
    /// [`Refusal`]; the account is then as it was.
    pub fn book(&mut self, request: &Request) -> Result<(), Refusal> {
        for (relation, price) in self.admit(request)? {
            let spent = self.spent.entry(relation).or_insert(MuSquared::ZERO);
            *spent = spent.checked_add(price).expect("admitted sums fit");
        }
        self.remember(request);
        Ok(())
    }

    /// Keeps what later requests are held against of an earlier one.
    pub fn remember(&mut self, request: &Request) {
        self.labels.extend(request.labels.clone().filter(|labels| !self.labels.contains(labels)));
        self.tables.extend(request.table_as_read().filter(|table| !self.tables.contains(table)));
    }

    /// Whether a promised relation is about a column of the table: that of labels, or that of the unit.
    #[must_use]
    pub fn promises_columns(&self) -> bool {
        let of_unit = |relation: &Relation| match &relation.unit {
            PrivacyUnit::Row => false,
            PrivacyUnit::Column { .. } => true,
        };
        self.promises_labels() || self.spent.keys().any(of_unit)
    }

    /// Checks that a request reads the table as earlier ones did: which rows it has, or a long record of one unit could be many rows; and, where the
    /// owner's promise is about a column, which column a name means. Relations have columns by name, and a table read in another way gives the
    /// name to another column: a unit of several rows would be many units of one, and a label a feature.
    ///
    /// # Errors
    /// [`Refusal::OtherRows`], [`Refusal::OtherTable`].
    pub fn check_table(&self, request: &Request) -> Result<(), Refusal> {
        let Some(table) = request.table_as_read() else { return Ok(()) };
        if self.tables.iter().any(|earlier| earlier.row_breaks() != table.row_breaks()) {
            return Err(Refusal::OtherRows);
        }
        if self.promises_columns() && self.tables.iter().any(|earlier| *earlier != table) {
            return Err(Refusal::OtherTable);
        }
        Ok(())
    }

    /// Whether labels are protected, and all else of a row is public, under a promised relation.
    #[must_use]
    pub fn promises_labels(&self) -> bool {
        self.spent.keys().any(|relation| relation.adjacency == Adjacency::Label)
    }

    /// Checks that a request is about the labels that earlier ones were about, where the owner promises to protect labels: see
    /// [`crate::label_use`].
    ///
    /// # Errors
    /// [`Refusal::OtherColumn`], [`Refusal::OtherLabels`].
    pub fn check_labels(&self, request: &Request) -> Result<(), Refusal> {
        let Some(labels) = request.labels.as_ref().filter(|_| self.promises_labels()) else { return Ok(()) };
        match self.labels.iter().find(|earlier| !earlier.agrees_with(labels)) {
            None => Ok(()),
            Some(earlier) if earlier.column == labels.column => {
                Err(Refusal::OtherLabels { column: labels.column.clone() })
            }
            Some(earlier) => {
                Err(Refusal::OtherColumn { earlier: earlier.column.clone(), column: labels.column.clone() })
            }
        }
    }

    /// Decides on a request: the prices in every promised relation, or why not. Does not change the account.
    ///
    /// # Errors
    /// [`Refusal`], a function of the public history alone.
    pub fn admit(&self, request: &Request) -> Result<BTreeMap<Relation, MuSquared>, Refusal> {
        self.check_table(request)?;
        self.check_labels(request)?;
        let mut prices = BTreeMap::new();
        for (relation, spent) in &self.spent {
            let Some(price) = request.price_up(relation) else {
                return Err(Refusal::Unbounded { relation: relation.clone() });
            };
            let total = spent.checked_add(price);
            match self.budget {
                Some(budget) if total.is_none_or(|total| total > budget.mu_squared_down()) => {
                    return Err(Refusal::Exhausted(self.exhausted(relation, *spent, price, budget)));
                }
                None if total.is_none() => return Err(Refusal::Overfull { relation: relation.clone() }),
                Some(_) | None => prices.insert(relation.clone(), price),
            };
        }
        if prices.is_empty() { Err(Refusal::NothingPromised) } else { Ok(prices) }
    }

    /// Refuses what a session that claims a relation would be refused for this request. Asked before a row is read: that may take long, and not even
    /// the time of a refusal can depend on a row then.
    ///
    /// # Errors
    /// [`Refusal`], as [`Self::check_promised`] and [`Self::admit`] have it.
    pub fn may_admit(&self, claimed: &Relation, request: &Request) -> Result<(), Refusal> {
        self.check_promised(claimed)?;
        self.admit(request).map(drop)
    }

    fn exhausted(&self, relation: &Relation, spent: MuSquared, price: MuSquared, budget: Budget) -> Box<Exhausted> {
        let left = budget.mu_squared_down().checked_sub(spent).unwrap_or(MuSquared::ZERO);
        Box::new(Exhausted {
            relation: relation.clone(),
            asked_mu: price.mu_up(),
            asked_epsilon: epsilon_of(price, budget.delta),
            left_mu: left.mu_up(),
            left_epsilon: affordable_epsilon_down(left, budget.delta),
            delta: budget.delta,
        })
    }
}

/// Epsilon at `delta` of a spend, rounded up; 0 for nothing.
#[must_use]
pub fn epsilon_of(spent: MuSquared, delta: Delta) -> f64 {
    crate::units::Mu::new(spent.mu_up()).map_or(0.0, |mu| gdp::epsilon_up(mu, delta))
}

/// The largest epsilon at `delta` that a request may ask for and still fit into `left`; 0 when none does.
#[must_use]
pub fn affordable_epsilon_down(left: MuSquared, delta: Delta) -> f64 {
    let fits =
        |epsilon: f64| Epsilon::new(epsilon).is_ok_and(|epsilon| Budget { epsilon, delta }.mu_squared_down() <= left);
    // `epsilon_of` rounds up; walk down until the price of the round trip fits.
    let start = epsilon_of(left, delta);
    let found =
        (0..60).map(|step| start * (1.0 - 1e-12 * 2f64.powi(step))).find(|epsilon| fits(*epsilon)).unwrap_or(0.0);
    // A whole budget of 2 should be told as 2, not as a little less.
    let round = (start * 1e6).round() / 1e6;
    if round > found && fits(round) { round } else { found }
}

/// Rounded down to the six decimals that messages print, so that a request for the printed figure fits.
#[must_use]
pub fn six_decimals_down(figure: f64) -> f64 {
    (figure * 1e6).floor() / 1e6
}

/// What messages say of the largest request that fits in what is left, by its mu and its epsilon at a ledger's delta.
///
/// Where that delta alone is more than what is left gives, an epsilon may fit at a smaller one.
#[must_use]
pub fn largest_request(mu: f64, epsilon: f64, delta: Delta) -> String {
    let (epsilon, delta) = (six_decimals_down(epsilon), delta.get());
    if epsilon > 0.0 {
        format!("the largest request that fits is epsilon {epsilon:.6} at delta {delta:e}")
    } else if six_decimals_down(mu) > 0.0 {
        format!("no epsilon from 0.000001 on fits at delta {delta:e}; one may at a smaller delta")
    } else {
        "no request fits".to_owned()
    }
}

/// Rounded up to the six decimals that messages print, for what was spent or is claimed; but for a part in 10^9, which its computation may
/// have added: a whole budget of 2 is told as 2.
#[must_use]
pub fn six_decimals_up(figure: f64) -> f64 {
    (figure * 1e6 * (1.0 - 1e-9)).ceil() / 1e6
}

/// The figures of a request that does not fit the budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Exhausted {
    /// Where it does not fit.
    pub relation: Relation,
    /// Price of the request.
    pub asked_mu: f64,
    /// The same as epsilon at [`Self::delta`].
    pub asked_epsilon: f64,
    /// What is left of the budget.
    pub left_mu: f64,
    /// The largest request that fits, as epsilon at [`Self::delta`].
    pub left_epsilon: f64,
    /// Delta of the ledger.
    pub delta: Delta,
}

/// A request that the promises do not allow.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Refusal {
    /// It costs more than is left.
    #[error(
        "the ledger refuses: under {} the request costs mu {:.6} (epsilon {:.6} at delta {:e}) and mu {:.6} is left; {}",
        .0.relation, six_decimals_up(.0.asked_mu), six_decimals_up(.0.asked_epsilon), .0.delta.get(),
        six_decimals_down(.0.left_mu), largest_request(.0.left_mu, .0.left_epsilon, .0.delta)
    )]
    Exhausted(Box<Exhausted>),
    /// It has no finite price in a promised relation.
    #[error(
        "the ledger refuses: its owner promised protection under {relation}, where this request has no finite price; use a \
         schema with that privacy unit and a method that works under that adjacency"
    )]
    Unbounded {
        /// The promised relation.
        relation: Relation,
    },
    /// All requests together would cost more than can be written down.
    #[error(
        "the ledger refuses: under {relation} all its requests together would cost more than mu {:.0}, the most that an account \
         holds, which protects nobody; ask with a smaller epsilon, or on a copy of the table with a ledger of its own",
        MuSquared::MAX.mu_up()
    )]
    Overfull {
        /// The relation.
        relation: Relation,
    },
    /// The claim is about a relation that the owner does not keep an account of.
    #[error(
        "the ledger refuses: the schema protects {claimed}, and the ledger promises only {promised}; change `unit` and `adjacency` in the \
         schema, or make a ledger with `--promise '{claimed}'`, which knows nothing of what this one has spent"
    )]
    NotPromised {
        /// Relation of the schema.
        claimed: Relation,
        /// Relations of the ledger, as text.
        promised: String,
    },
    /// Rows are read in another way than before, so that a column's name may mean another column.
    #[error(
        "the ledger refuses: what it promises is about a column, which a request finds by its name, and earlier requests read the table in \
         another way, in which that name may mean another column; declare [table] as before (a model is evaluated with the [table] of its \
         schema), or make another ledger with `reticent ledger init`, which knows nothing of what this one has spent"
    )]
    OtherTable,
    /// The file has other rows than before.
    #[error(
        "the ledger refuses: earlier requests read the table with another `format` or `delimiter`, by which it may have other \
         rows; declare them under [table] as before (a model brings those of its schema), or make another ledger with \
         `reticent ledger init`, which knows nothing of what this one has spent"
    )]
    OtherRows,
    /// Another column is the label than before, whose values are public under label adjacency.
    #[error(
        "the ledger refuses: it promises to protect labels, earlier requests had them in the column {earlier:?} and this one in {column:?}, \
         and all but the label of a row is public; for another label make another ledger with `reticent ledger init`"
    )]
    OtherColumn {
        /// Column of earlier requests.
        earlier: String,
        /// Column of this one.
        column: String,
    },
    /// Other labels of the column are usable than before, or rows are read in another way.
    #[error(
        "the ledger refuses: it promises to protect the labels in {column:?}, and which rows have a usable one is public; earlier requests \
         declared other classes or another [table], and what is usable in one of them and not in the other would tell labels; declare \
         them as before, or make another ledger with `reticent ledger init`"
    )]
    OtherLabels {
        /// Column of the labels.
        column: String,
    },
    /// A ledger without any relation protects nobody.
    #[error("the ledger refuses: it promises no relation; make one with `reticent ledger init`")]
    NothingPromised,
}

/// A charge that could not be made: nothing was granted. Whether an entry stands all the same is in the message.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The promises do not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The ledger could not be read or written.
    #[error("{0}")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Entry of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerReference {
    /// Identity of the ledger, as its file states it.
    pub id: String,
    /// Number of the entry.
    pub entry: u64,
    /// Its seal, where the ledger is at hand: `reticent ledger verify --model` holds it against the file, and finds every later
    /// change of this entry and of all before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

/// Keeps an account somewhere that outlives the process.
pub trait LedgerStore {
    /// The account as it stands.
    ///
    /// # Errors
    /// [`LedgerError::Store`] when it cannot be read.
    fn account(&self) -> Result<Account, LedgerError>;

    /// Charges a request: in one atomic step, reads the account, asks [`Account::admit`], and writes the entry.
    /// When this returns `Ok` the entry survives a crash of the machine.
    ///
    /// # Errors
    /// [`LedgerError::Refused`] by the account's rules, [`LedgerError::Store`] when the entry may not be on disk.
    fn charge(&mut self, request: &Request) -> Result<(), LedgerError>;

    /// The entry that this object wrote last: what a certificate names as its payment. `None` before its first charge.
    fn last_entry(&self) -> Option<LedgerReference>;
}
