//! Where in its bounds a number lies, found in released counts: bounds are promises, and may be far wider than the values.

/// Counts are believed when twice their noise is at most this share of all rows.
const LARGEST_DOUBT: f64 = 0.3;
/// How much wider than the run of bins a range is: in any case, and for each share of the rows that may lie outside.
const MARGIN: (f64, f64) = (1.25, 15.0);
/// The same of a target's window for what noise may hide. Noise of what is then fitted grows with the window, and what it hides mostly is not
/// there: with three times as much, windows of doubtful bins were several times as wide as the target.
const DOUBT_MARGIN: f64 = 5.0;
/// A window gains nothing unless it is narrower than this share of the bounds.
const WORTH_WHILE: f64 = 2.0 / 3.0;
/// Share of the rows whose target may lie beyond its window: what they add is then lost in the noise of products with the target,
/// which is about this times the columns over `n mu`; and at most 2 %.
const SPARED: (f64, f64) = (0.5, 0.02);

/// A window is made so many times as wide at most, however little noise there is: further out rows are no likelier for wide bounds, and
/// standard errors grow with the window where they are mostly noise.
const WIDENED_MAX: f64 = 3.0;

/// Fewest bins in which rows may be told to be spread smoothly, and how far their squares must stand out of what noise makes of them.
const SMOOTH_BINS: usize = 4;
const SMOOTH_TOLD: f64 = 10.0;
/// Bins in which rows are seen that make a count of many numbers, and deviations of noise by which they are seen in one.
const MANY_BINS: usize = 6;
const SEEN: f64 = 3.0;

/// Noise of a bin is taken to be at least this share of the rows.
const NOISE_MIN: f64 = 1e-6;
/// Chance that a row is in the part where rows are likely.
const LIKELY: f64 = 0.95;

/// Released counts of rows by the bin of a number.
#[derive(Clone, Copy, Debug)]
pub struct BinCounts<'a> {
    /// Rows in each of some bins of equal width over the bounds, with noise of `noise` each.
    pub bins: &'a [f64],
    /// Noise of a bin.
    pub noise: f64,
    /// All rows in the bins, with noise of `rows_noise`.
    pub rows: f64,
    /// Noise of their number; 0 where it is public.
    pub rows_noise: f64,
}

/// Deviations of noise by which the bin of missing values stands out when it is left out of a search. With fewer, chance takes margins from tables in which
/// nothing is missing.
pub const LEFT_OUT: f64 = 2.5;

impl BinCounts<'_> {
    /// Rows in a bin, where it stands out of the bins beside it, two on either side, by what these have on average and by so many deviations of noise.
    #[must_use]
    pub fn spike(&self, bin: usize, deviations: f64) -> Option<f64> {
        let there = self.bins[bin];
        let beside = (bin.saturating_sub(2)..=(bin + 2).min(self.bins.len() - 1)).filter(|other| *other != bin);
        let count = beside.clone().count() as f64;
        let mean = beside.map(|other| self.bins[other]).sum::<f64>() / count;
        let noise = self.noise * (1.0 + count.recip()).sqrt();
        let excess = there - mean;
        (excess > deviations * noise && excess > mean && there > 0.0).then_some(there)
    }

    /// How far from the centre of a part the middles of its bins are, with the bounds of the bins as -1 and 1, and the rows in them.
    fn around_centre(&self, part: BoundsPart) -> Vec<(f64, f64)> {
        let step = 2.0 / self.bins.len() as f64;
        let of_middle = |(bin, count): (usize, &f64)| ((bin as f64 + 0.5) * step - 1.0 - part.centre, *count);
        self.bins.iter().enumerate().map(of_middle).filter(|(at, _)| at.abs() <= part.half).collect()
    }

    /// How far from the centre of a part the mean of its rows is, in it.
    #[must_use]
    pub fn mean_from_centre(&self, part: BoundsPart) -> f64 {
        let mean = self.around_centre(part).iter().map(|(at, count)| at * count).sum::<f64>() / self.rows;
        mean.clamp(-part.half, part.half)
    }

    /// Standard deviation of the noise of that mean.
    fn mean_noise(&self, part: BoundsPart) -> f64 {
        self.noise * self.around_centre(part).iter().map(|(at, _)| at * at).sum::<f64>().sqrt() / self.rows
    }

    /// The place of the bounds, where these are -1 and 1, that a row of a part has on average: drawn to the middle of the part as far as its noise leaves it
    /// open.
    /// ```text
    ///   m / (1 + 3 (e/h)²)      m: mean from the centre of the part;  e: its noise;  h: half the part
    /// ```
    /// Rows are taken to be anywhere in the part alike before they are counted: `h²/3`.
    #[must_use]
    pub fn mean_place(&self, part: BoundsPart) -> f64 {
        part.centre + self.mean_from_centre(part) / (1.0 + 3.0 * (self.mean_noise(part) / part.half).powi(2))
    }

    /// The bins of a part, its lowest value and its width.
    fn within(&self, [low, width]: [f64; 2]) -> &[f64] {
        let bins = self.bins.len() as f64;
        &self.bins[(low * bins) as usize..(((low + width) * bins).ceil() as usize).min(self.bins.len())]
    }

    /// What is found where a bin is left out that stands out of those beside it; nothing where it does not.
    fn without<T>(&self, bin: usize, find: impl Fn(BinCounts<'_>) -> Option<T>) -> Option<T> {
        let there = self.spike(bin, LEFT_OUT)?;
        let mut bins = self.bins.to_vec();
        bins[bin] = 0.0;
        let (rows, rows_noise) = (self.rows - there, self.rows_noise.hypot(self.noise));
        if rows > 0.0 { find(BinCounts { bins: &bins, noise: self.noise, rows, rows_noise }) } else { None }
    }

    /// Share of the rows that noise may hide in so many bins: two standard deviations.
    fn doubt(&self, length: usize) -> f64 {
        2.0 * (length as f64 * self.noise.powi(2) + self.rows_noise.powi(2)).sqrt() / self.rows
    }
}

/// What a search for a feature's range is content with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeRule {
    /// Share of the rows that may lie beyond the range: what is far out is then read as the border, and one long tail does not decide
    /// how all others are scaled.
    pub spared: f64,
    /// Share of a run's doubt by which it may fall short of the rows: with 1 the run is as narrow as noise could make it seem wide, with 0
    /// as wide as it seems.
    pub doubt_share: f64,
    /// The part that rows are in is less than this share of the bounds.
    pub narrower_than: f64,
}

/// A part of the bounds, where these are `-1` and `1`. It may pass them at one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundsPart {
    /// Its middle.
    pub centre: f64,
    /// Half its width.
    pub half: f64,
}

impl BoundsPart {
    /// All of the bounds.
    pub const BOUNDS: Self = Self { centre: 0.0, half: 1.0 };

    /// Its ends within the bounds, where these are 0 and 1.
    pub(crate) fn ends(self) -> [f64; 2] {
        [self.centre - self.half, self.centre + self.half].map(|end| ((1.0 + end) / 2.0).clamp(0.0, 1.0))
    }
}

/// The share of the rows that a search may spare, for products of the target with so many columns: `min(2 %, columns / (2 signal))`, where
/// `signal` is the number of rows times `mu`, or over the noise of such a product.
#[must_use]
pub fn spared(columns: usize, signal: f64) -> f64 {
    (SPARED.0 * columns as f64 / signal).min(SPARED.1)
}

/// The narrowest run of bins that holds all rows, as far as can be told, with a margin:
/// ```text
///   run:     sum of its bins >= (1 - spared) rows - doubt_share 2 e,    e² = length · noise² + rows_noise²,    2 e <= 3/10 rows
///   window:  1.25 + 15 spared + 5 · doubt_share 2 e / rows times as wide, around the same middle, moved into the bounds
/// ```
/// `spared` is the share of rows that may be brought to the window's border, and `2 e` is taken `doubt_share` times. Where noise hides every run,
/// the part where the rows are likely: see `likely_part`. All of the bounds where no window is narrower than two thirds of them.
#[must_use]
pub fn find_part(counts: &BinCounts<'_>, spared: f64, doubt_share: f64) -> BoundsPart {
    let part = match shortest_run(counts, spared, doubt_share) {
        Search::Found(run) => run.part(MARGIN.0 + MARGIN.1 * spared + DOUBT_MARGIN * doubt_share * run.doubt),
        Search::Hidden => likely_part(counts, spared),
        Search::AllBounds => BoundsPart::BOUNDS,
    };
    if part.half < WORTH_WHILE { part } else { BoundsPart::BOUNDS }
}

/// The part that the rows are seen in: that of [`find_part`] but for its margin, a quarter of the run. All of the bounds where noise hides every run.
#[must_use]
pub fn seen_part(counts: &BinCounts<'_>, spared: f64, doubt_share: f64) -> BoundsPart {
    match shortest_run(counts, spared, doubt_share) {
        Search::Found(run) => run.part(MARGIN.0),
        Search::Hidden | Search::AllBounds => BoundsPart::BOUNDS,
    }
}

/// Noise is next to nothing where it adds so little to predictions: a share of what the target varies by.
pub const NEGLIGIBLE: f64 = 1.0 / 200.0;

/// A part in which a target was found, made as wide as this half: rows that noise hid may lie beyond it, and would count as if at its border, which no standard
/// error knows of. At most 3 times as wide as it was, never less, and all of the bounds where it is 2/3 of them.
#[must_use]
pub fn widened(found: BoundsPart, half: f64) -> BoundsPart {
    let half = half.min(WIDENED_MAX * found.half).max(found.half);
    if half < WORTH_WHILE { BoundsPart { half, ..found } } else { BoundsPart::BOUNDS }
}

/// How wide a target's window may be, half of it, for its noise to add a `share` of what the target varies by to predictions:
/// ```text
///   (share V / sum_j k_j)^(1/2)
/// ```
/// `variance`, `V`: what the target varies by at least ([`variance_at_least`]). `noise_squares`, `k_j`: the mean square of what noise along direction
/// `j` adds to predictions where all of the bounds are read. Both with the bounds as -1 and 1.
#[must_use]
pub fn affordable_half(share: f64, variance: f64, noise_squares: &[f64]) -> f64 {
    (share * variance / noise_squares.iter().sum::<f64>().max(f64::MIN_POSITIVE)).sqrt()
}

/// What rows in a part vary by at least, with the bounds of the bins as -1 and 1:
/// ```text
///   (v^(1/2) - step/2)²,  v the variance of the middles of the part's bins, less two standard deviations of its noise
/// ```
/// Rows are up to half a bin from its middle.
#[must_use]
pub fn variance_at_least(part: BoundsPart, counts: &BinCounts<'_>) -> f64 {
    let step = 2.0 / counts.bins.len() as f64;
    let (within, mean) = (counts.around_centre(part), counts.mean_from_centre(part));
    let square: f64 = within.iter().map(|(at, count)| count * (at - mean).powi(2)).sum();
    let fourth: f64 = within.iter().map(|(at, _)| (at - mean).powi(4)).sum();
    let variance = (square - 2.0 * counts.noise * fourth.sqrt()) / counts.rows;
    (variance.max(0.0).sqrt() - step / 2.0).max(0.0).powi(2)
}

/// Where rows are likely, if the bounds may be far too wide and noise hides how far:
/// ```text
///   model:      n rows spread evenly over L neighbouring bins out of B; half a chance of L = B, else L has a chance of 1/L, and each
///               place the same
///   likelihood: exp((n/L) (held - n/2) / noise²), with what the L bins hold
///   part:       5/4 of the shortest run of bins where a row is with a chance of 19/20, if it seems to hold (1 - spared) n - 2 e
/// ```
/// Under noise alone the expected likelihood of every run is 1, so that a wrong one is believed no more often than its chance says.
fn likely_part(counts: &BinCounts<'_>, spared: f64) -> BoundsPart {
    let bins = counts.bins.len();
    let up_to = running_sums(counts.bins);
    let noise = counts.noise.max(NOISE_MIN * counts.rows);
    let harmonic: f64 = (1..=bins).map(|length| 1.0 / length as f64).sum();
    let log_chance = |length: usize| -> f64 {
        let of_length = 0.5 / (length as f64 * harmonic) + if length == bins { 0.5 } else { 0.0 };
        (of_length / (bins - length + 1) as f64).ln()
    };
    let runs = || (1..=bins).flat_map(move |length| (0..=bins - length).map(move |first| (first, length)));
    let log_weight = |(first, length): (usize, usize)| {
        let held = up_to[first + length] - up_to[first];
        let dense = counts.rows / length as f64;
        log_chance(length) + dense * (held - counts.rows / 2.0) / noise.powi(2)
    };
    let largest = runs().map(log_weight).fold(f64::NEG_INFINITY, f64::max);
    // Of each run its chance a bin, added at its first bin and taken away behind its last.
    let mut steps = vec![0.0; bins + 1];
    for (first, length) in runs() {
        let share = (log_weight((first, length)) - largest).exp() / length as f64;
        steps[first] += share;
        steps[first + length] -= share;
    }
    let chances: Vec<f64> = running_sums(&steps)[1..=bins].to_vec();
    let chances = running_sums(&chances);
    let wanted = LIKELY * chances[bins];
    let holds = |length: &usize| chances.windows(length + 1).any(|run| run[*length] - run[0] >= wanted);
    let length = (1..bins).find(holds).unwrap_or(bins);
    let chance = |first: &usize| chances[first + length] - chances[*first];
    let first = (0..=bins - length).max_by(|one, other| chance(one).total_cmp(&chance(other))).expect("a run");
    let run = Run { first, length, bins, doubt: counts.doubt(length) };
    if run.holds(&up_to, counts.rows, spared + run.doubt) { run.part(MARGIN.0) } else { BoundsPart::BOUNDS }
}

/// Where a feature lies and how it is spread there, in shares of its bounds: 0 is the low bound, 1 the high one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundRange {
    /// The lowest and the highest value that it should be read with.
    pub range: [f64; 2],
    /// The part that most rows are in: its lowest value and its width.
    pub part: [f64; 2],
    /// Mean of the rows in that part, as a share of it.
    pub mean: f64,
    /// Mean square distance from that mean, in squares of its width.
    pub variance: f64,
    /// Standard deviation of what the mean is wrong by.
    pub mean_noise: f64,
    /// Whether missing values were told from all others: see [`find_range`].
    pub is_missing_apart: bool,
}

/// Where a feature lies; none where more of its bounds is needed than the rule asks for, or counts are too noisy to tell.
/// ```text
///   run:        sum of its bins >= (1 - spared) rows - doubt_share 2 e,    2 e <= 3/10 rows
///   part:       5/4 of the run;    range:  1.25 + 15 (spared + 2 e / rows) times as wide, within the bounds
///   m, v:       mean and variance of the middles x of the part's bins, by their counts c
///   u² = s² sum c² / (sum c)²,  s² = step²/12:    where in their bins the rows are, the same for all rows of a bin
///   variance:   v + s² + u²;    mean_noise:  (u² + bins noise² / (12 rows²))^(1/2)
/// ```
/// Nothing far out is in the mean and the variance, or it would be the noise of empty bins that is. Rows that are all in one bin may all
/// be at its border: without `u²` their distance from its middle would count as much as a number that varies.
///
/// Missing values are all in the bin `missing`, which may be far from the others. Where it stands out of those beside it, the others are looked for
/// first, and if that bin is beyond the part that they are in, theirs is the range, without a margin on that side. These rows may still be others that have
/// that very number, as a count may have: only where the others are spread smoothly (`is_smooth`), or are several (`are_many`) numbers and these rows as
/// far from them as that part is wide, are they taken for missing ones.
#[must_use]
pub fn find_range(counts: &BinCounts<'_>, missing: usize, rule: RangeRule) -> Option<FoundRange> {
    let of_others = counts.without(missing, |others| range_of(&others, rule));
    let [from, to] = [missing, missing + 1].map(|edge| edge as f64 / counts.bins.len() as f64);
    // In a bin next to theirs there may be others as well.
    let beside = of_others.and_then(|found| {
        let [low, high] = [found.part[0], found.part[0] + found.part[1]];
        let is_far = (low - to).max(from - high) >= found.part[1];
        let is_missing_apart = is_smooth(counts, found.part) || is_far && are_many(counts, found.part);
        if to < low {
            Some(FoundRange { range: [low, found.range[1]], is_missing_apart, ..found })
        } else if from > high {
            Some(FoundRange { range: [found.range[0], high], is_missing_apart, ..found })
        } else {
            None
        }
    });
    beside.or_else(|| range_of(counts, rule))
}

/// The same of the others alone, where another measure of the feature has told that its missing values are apart from them; none where their bin
/// does not stand out.
#[must_use]
pub fn find_range_of_others(counts: &BinCounts<'_>, missing: usize, rule: RangeRule) -> Option<FoundRange> {
    counts.without(missing, |others| range_of(&others, rule))
}

fn range_of(counts: &BinCounts<'_>, rule: RangeRule) -> Option<FoundRange> {
    let Search::Found(run) = shortest_run(counts, rule.spared, rule.doubt_share) else { return None };
    let part = run.part(MARGIN.0);
    if part.half >= rule.narrower_than {
        return None;
    }
    let [low, high] = part.ends();
    let width = high - low;
    let step = 1.0 / counts.bins.len() as f64;
    let (first, end) = ((low / step) as usize, ((high / step).ceil() as usize).min(counts.bins.len()));
    let at = |bin: usize| ((bin as f64 + 0.5) * step - low) / width;
    let weighted = |of: &dyn Fn(f64) -> f64| (first..end).map(|bin| of(at(bin)) * counts.bins[bin]).sum::<f64>();
    // A sum of noisy counts that is much less than the run promised is an accident.
    let total = weighted(&|_| 1.0).max(counts.rows / 2.0);
    let mean = (0.5 + weighted(&|at| at - 0.5) / total).clamp(0.0, 1.0);
    let within = (step / width).powi(2) / 12.0;
    let alike = counts.bins[first..end].iter().map(|count| (count / total).powi(2)).sum::<f64>().min(1.0) * within;
    let variance = weighted(&|at| (at - mean).powi(2)) / total + within + alike;
    let of_counts = counts.noise / counts.rows * ((end - first) as f64 / 12.0).sqrt();
    let mean_noise = alike.sqrt().hypot(of_counts);
    let range = run.part(MARGIN.0 + MARGIN.1 * (rule.spared + run.doubt)).ends();
    Some(FoundRange { range, part: [low, width], mean, variance, mean_noise, is_missing_apart: false })
}

/// Whether rows are in several bins of a part: more than three deviations of noise, and a tenth of what each would have if all were alike.
fn are_many(counts: &BinCounts<'_>, part: [f64; 2]) -> bool {
    let within = counts.within(part);
    let least = (SEEN * counts.noise).max(0.1 * within.iter().sum::<f64>() / within.len() as f64);
    within.iter().filter(|count| **count > least).count() >= MANY_BINS
}

/// Whether rows are spread over a part as numbers are that may be any, and not in a bin here and there, as whole numbers are and flags:
/// ```text
///   sum (c_k - (c_(k-1) + c_(k+1))/2)² - 3/2 m e²  <=  1/2 (sum c_k² - m e²)     over m bins, at least 4, where the right side is told from noise
/// ```
/// It is 3/2 of the sum of squares where every other bin is empty, and next to nothing where counts rise and fall over many bins.
fn is_smooth(counts: &BinCounts<'_>, part: [f64; 2]) -> bool {
    let within = counts.within(part);
    let inner = within.len().saturating_sub(2);
    if inner < SMOOTH_BINS {
        return false;
    }
    let noise = counts.noise.powi(2);
    let bend: f64 = within.windows(3).map(|bins| (bins[1] - f64::midpoint(bins[0], bins[2])).powi(2)).sum();
    let square: f64 = within[1..=inner].iter().map(|count| count * count).sum();
    let (bend, square) = (bend - 1.5 * inner as f64 * noise, square - inner as f64 * noise);
    square > SMOOTH_TOLD * (inner as f64).sqrt() * noise && bend <= 0.5 * square
}

/// Some neighbouring bins.
struct Run {
    first: usize,
    length: usize,
    /// Of all bins.
    bins: usize,
    /// Share of the rows that noise may hide: two standard deviations.
    doubt: f64,
}

impl Run {
    /// Whether it seems to hold all rows but such a share, by the running sums of the bins.
    fn holds(&self, up_to: &[f64], rows: f64, spared: f64) -> bool {
        up_to[self.first + self.length] - up_to[self.first] >= (1.0 - spared) * rows
    }

    /// So many times as wide, around the same middle.
    fn part(&self, times: f64) -> BoundsPart {
        let bins = self.bins as f64;
        let centre = (2.0 * self.first as f64 + self.length as f64) / bins - 1.0;
        BoundsPart { centre, half: times * self.length as f64 / bins }
    }
}

/// What came of a search.
enum Search {
    Found(Run),
    /// No shorter run holds the rows.
    AllBounds,
    /// Noise hides what longer runs hold.
    Hidden,
}

/// The shortest run that holds all rows but those that are spared and a share of what noise may hide: see [`find_part`].
fn shortest_run(counts: &BinCounts<'_>, spared: f64, doubt_share: f64) -> Search {
    let up_to = running_sums(counts.bins);
    for length in 1..counts.bins.len() {
        let doubt = counts.doubt(length);
        if doubt > LARGEST_DOUBT {
            return Search::Hidden;
        }
        let runs = up_to.windows(length + 1).map(|run| run[length] - run[0]);
        let (first, _) = runs.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other)).expect("a run");
        let run = Run { first, length, bins: counts.bins.len(), doubt };
        if run.holds(&up_to, counts.rows, spared + doubt_share * doubt) {
            return Search::Found(run);
        }
    }
    Search::AllBounds
}

/// Sums of the first none, one, two and so on.
fn running_sums(values: &[f64]) -> Vec<f64> {
    let sums = values.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    });
    std::iter::once(0.0).chain(sums).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 rows with `shares` of all in the bins from `first`.
    fn bins(first: usize, shares: &[f64]) -> Vec<f64> {
        let mut bins = vec![0.0; 256];
        for (bin, share) in bins[first..].iter_mut().zip(shares) {
            *bin = share * 1000.0;
        }
        bins
    }

    fn found(bins: &[f64], noise: f64, spared: f64) -> BoundsPart {
        find_part(&BinCounts { bins, noise, rows: 1000.0, rows_noise: 0.0 }, spared, 1.0)
    }

    fn half(bins: &[f64], noise: f64, spared: f64) -> f64 {
        found(bins, noise, spared).half
    }

    #[test]
    fn without_noise_it_is_the_run_of_all_rows_and_a_quarter() {
        let window = found(&bins(64, &[0.5, 0.0, 0.3, 0.2]), 0.0, 0.0);
        assert_eq!(window, BoundsPart { centre: 132.0 / 256.0 - 1.0, half: 1.25 * 4.0 / 256.0 });
    }

    #[test]
    fn what_may_be_spared_narrows_and_the_margin_covers_it() {
        let far = [&[0.6, 0.39][..], &[0.0; 40], &[0.01]].concat();
        assert!(half(&bins(10, &far), 0.0, 0.005) > 40.0 / 256.0);
        let window = found(&bins(10, &far), 0.0, 0.02);
        assert!(
            (window.centre - (22.0 / 256.0 - 1.0)).abs() < 1e-12 && (window.half - 1.55 * 2.0 / 256.0).abs() < 1e-12
        );
    }

    /// By hand: half of 1,000 rows in each of two bins that are ten bins apart, so that their middles vary by 5² bins and rows by at least 4.5².
    /// Noise of 1 a bin takes `2 sum(x⁴)^(1/2) / 1000` off 25.
    #[test]
    fn a_window_is_widened_as_far_as_noise_is_negligible() {
        let two_places = bins(100, &[&[0.5][..], &[0.0; 9], &[0.5]].concat());
        let found = BoundsPart { centre: 211.0 / 256.0 - 1.0, half: 16.0 / 256.0 };
        let bin_square = (2.0f64 / 256.0).powi(2);
        let half = |noise: f64, noise_square: f64| {
            let counts = BinCounts { bins: &two_places, noise, rows: 1000.0, rows_noise: 0.0 };
            let part = widened(
                found,
                affordable_half(
                    NEGLIGIBLE,
                    variance_at_least(found, &counts),
                    &[noise_square / 4.0, 0.75 * noise_square],
                ),
            );
            assert!((part.centre - found.centre).abs() < 1e-12);
            part.half
        };
        for (expected, wanted) in [(1.0, 0.5), (2.0, 2.0), (2.9, 2.9), (3.0, 3.1), (3.0, 1e9)] {
            let noise_square = 4.5f64.powi(2) * bin_square / 200.0 / (wanted * found.half).powi(2);
            let times = half(0.0, noise_square) / found.half;
            assert!((times - expected).abs() < 1e-9, "{wanted}: {times}");
        }
        // The middles of the bins of the part are -8 to 8 from its own.
        let fourth: f64 = (-8..=8).map(|at| f64::from(at).powi(4)).sum();
        let deviation = (25.0 - 2.0 * fourth.sqrt() / 1000.0).sqrt() - 0.5;
        let noise_square = deviation.powi(2) * bin_square / 200.0 / (2.0 * found.half).powi(2);
        assert!((half(1.0, noise_square) - 2.0 * found.half).abs() < 1e-9);
        assert!((half(500.0, 1e-12) - found.half).abs() < 1e-12, "noise may be all that varies");
        // All of the bounds where little is missing.
        let counts = BinCounts { bins: &two_places, noise: 0.0, rows: 1000.0, rows_noise: 0.0 };
        let half_of_them = BoundsPart { half: 0.25, ..found };
        assert_eq!(
            widened(half_of_them, affordable_half(NEGLIGIBLE, variance_at_least(half_of_them, &counts), &[1e-12])),
            BoundsPart::BOUNDS
        );
        // In one bin nothing is known to vary.
        let one = bins(100, &[1.0]);
        let counts = BinCounts { bins: &one, ..counts };
        let narrow = find_part(&counts, 0.0, 1.0);
        assert_eq!(widened(narrow, affordable_half(NEGLIGIBLE, variance_at_least(narrow, &counts), &[1e-12])), narrow);
    }

    /// Rows are in bins 10 and 11, and a share of them is missing and counts as bin 128 or, near the others, as bin 11.
    #[test]
    fn missing_values_far_from_all_others_do_not_widen_a_range() {
        let rule = RangeRule { spared: 0.01, doubt_share: 1.0, narrower_than: 2.0 / 3.0 };
        let with_missing = |missing: f64, bin: usize| {
            let mut bins = bins(10, &[(1.0 - missing) / 2.0; 2]);
            bins[bin] += missing * 1000.0;
            bins
        };
        let found = |bins: &[f64], missing| {
            let counts = BinCounts { bins, noise: 0.1, rows: 1000.0, rows_noise: 0.0 };
            find_range(&counts, missing, rule).expect("a part")
        };
        let without = found(&with_missing(0.0, 128), 128);
        for missing in [0.02, 0.1, 0.4, 0.7] {
            let far = found(&with_missing(missing, 128), 128);
            assert!(
                (far.mean - without.mean).abs() < 1e-9 && (far.variance - without.variance).abs() < 1e-9,
                "{far:?}"
            );
            assert!(far.range[1] < 14.0 / 256.0, "{far:?}");
            assert!(!far.is_missing_apart, "others of two values may have a third: {far:?}");
            // The same rows that nobody said to be missing are a part of what varies.
            assert!(found(&with_missing(missing, 128), 255).range[1] > 0.5);
            let among = found(&with_missing(missing, 11), 11);
            assert!(among.mean > without.mean, "{among:?}");
            let beside = found(&with_missing(missing, 12), 12);
            assert!(beside.range[1] > 13.0 / 256.0, "{beside:?}");
        }
    }

    /// Rows fall from bin 10 to bin 41 as a tail does; a fifth of all counts as another bin. In every second bin alone they are whole numbers, of which that may be
    /// one unless it is far; and noise that could hide the difference tells nothing.
    #[test]
    fn missing_values_are_told_from_others_that_are_spread_smoothly() {
        let rule = RangeRule { spared: 0.01, doubt_share: 1.0, narrower_than: 2.0 / 3.0 };
        let found = |every: usize, noise: f64, place: usize, missing: usize| {
            let tail: Vec<f64> = (0..32usize)
                .map(|bin| if bin.is_multiple_of(every) { (-(bin as f64) / 10.0).exp() } else { 0.0 })
                .collect();
            let total: f64 = tail.iter().sum();
            let mut bins = bins(10, &tail.iter().map(|share| 0.8 * share / total).collect::<Vec<_>>());
            bins[place] += 200.0;
            for (bin, count) in bins.iter_mut().enumerate() {
                *count += noise * [1.0, -1.0, -1.0, 1.0][bin % 4];
            }
            let counts = BinCounts { bins: &bins, noise, rows: 1000.0, rows_noise: 0.0 };
            find_range(&counts, missing, rule).is_some_and(|found| found.is_missing_apart)
        };
        let is_apart = |every, noise, missing| found(every, noise, 128, missing);
        let is_apart_at = |place, every, noise| found(every, noise, place, place);
        assert!(is_apart(1, 0.0, 128) && is_apart(1, 5.0, 128));
        assert!(!is_apart(1, 0.0, 200), "nobody said that they are missing");
        assert!(!is_apart(7, 1.0, 128), "five numbers, which 128 may be one of");
        assert!(is_apart(2, 0.0, 128) && is_apart(2, 5.0, 128), "sixteen, and nothing for as long behind them");
        assert!(!is_apart_at(70, 2, 0.0) && is_apart_at(70, 1, 0.0), "one more of them, or not");
        let even = bins(10, &[1.0 / 32.0; 32]);
        let smooth = |noise| {
            let counts = BinCounts { bins: &even, noise, rows: 1000.0, rows_noise: 0.0 };
            is_smooth(&counts, [10.0 / 256.0, 32.0 / 256.0])
        };
        // 30 bins between two others have 30 (31.25² - e²) of squares, beside 10 · 30^(1/2) e².
        assert!(smooth(18.5) && !smooth(18.7));
    }

    #[test]
    fn more_rows_may_be_spared_the_more_noise_there_is() {
        for (columns, signal, expected) in [(10, 1e4, 5e-4), (20, 1e4, 1e-3), (10, 250.0, 0.02), (10, 1.0, 0.02)] {
            assert!((spared(columns, signal) - expected).abs() < 1e-12, "{columns} {signal}");
        }
    }

    #[test]
    fn doubt_widens() {
        let clear = bins(100, &[1.0]);
        let widened = half(&clear, 50.0, 0.0);
        assert!((widened - 1.75 / 256.0).abs() < 1e-9, "{widened}");
    }

    /// Reference values by `testdata/golden/likely_part.py`: few bins among many, two places, and all of the bounds.
    #[test]
    fn where_noise_hides_every_run_the_likely_part_is_taken() {
        let golden = include_str!("../../../testdata/golden/likely_part.json");
        let golden: Vec<serde_json::Value> = serde_json::from_str(golden).expect("JSON");
        let number = |value: &serde_json::Value| value.as_f64().expect("a number");
        for case in &golden {
            let bins: Vec<f64> = case["bins"].as_array().expect("a list").iter().map(number).collect();
            let rows = number(&case["rows"]);
            let counts = BinCounts { bins: &bins, noise: number(&case["noise"]), rows, rows_noise: 0.0 };
            let part = find_part(&counts, number(&case["spared"]), 1.0);
            let [centre, half] = [0, 1].map(|place| number(&case["part"][place]));
            assert!(
                (part.centre - centre).abs() < 1e-12 && (part.half - half).abs() < 1e-12,
                "{part:?} {centre} {half}"
            );
        }
        // Where only the number of rows is doubtful, a clear bin is.
        let clear = bins(100, &[1.0]);
        let part = find_part(&BinCounts { bins: &clear, noise: 0.0, rows: 1000.0, rows_noise: 251.0 }, 0.0, 1.0);
        assert!((part.half - 1.25 / 256.0).abs() < 1e-12, "{part:?}");
    }

    #[test]
    fn a_feature_has_its_moments_in_the_part_where_most_rows_are() {
        let rule = RangeRule { spared: 0.01, doubt_share: 1.0, narrower_than: 2.0 / 3.0 };
        let found = |bins: &[f64], noise| {
            let counts = BinCounts { bins, noise, rows: 1000.0, rows_noise: 0.0 };
            find_range(&counts, 255, rule)
        };
        // Half of the rows in each of two of 256 bins, one in a thousand far away.
        let mut counts = bins(64, &[0.5, 0.5]);
        counts[250] = 1.0;
        let FoundRange { range, part: [low, width], mean, variance, mean_noise, .. } =
            found(&counts, 0.0).expect("a small part of the bounds");
        assert!((low - 63.75 / 256.0).abs() < 1e-12 && (width - 2.5 / 256.0).abs() < 1e-12);
        // Half of the rows are at a place of their own in a bin of 2/5 of the part.
        let alike = 0.5 * 0.4f64.powi(2) / 12.0;
        assert!((mean - 0.5).abs() < 1e-12 && (mean_noise - alike.sqrt()).abs() < 1e-12);
        assert!((variance - (0.2f64.powi(2) + 0.4f64.powi(2) / 12.0 + alike)).abs() < 1e-12, "{variance}");
        assert!((range[0] - (65.0 - 1.4) / 256.0).abs() < 1e-12 && (range[1] - (65.0 + 1.4) / 256.0).abs() < 1e-12);
        // With noise the range grows and the part does not; four bins, of which two are cut, carry noise.
        let doubtful = found(&counts, 20.0).expect("still");
        let doubt = 2.0 * 2.0f64.sqrt() * 20.0 / 1000.0;
        assert!(doubtful.part.iter().zip([low, width]).all(|(part, same)| (part - same).abs() < 1e-12));
        assert!((doubtful.range[1] - (65.0 + 1.4 + 15.0 * doubt) / 256.0).abs() < 1e-12);
        assert!((doubtful.mean_noise.powi(2) - 0.02f64.powi(2) * 4.0 / 12.0 - alike).abs() < 1e-12);
        // A range ends where the bounds do, and tells nothing that noise could hide.
        let low_end = found(&bins(0, &[1.0]), 20.0).expect("a small part of the bounds");
        assert!(low_end.range[0].abs() < 1e-12 && low_end.part[0].abs() < 1e-12);
        assert_eq!(found(&bins(0, &[1.0]), 151.0), None);
        assert_eq!(found(&bins(0, &[1.0 / 256.0; 256]), 0.1), None, "all of the bounds");
        assert_eq!(found(&bins(0, &[1.0 / 140.0; 140]), 0.1), None, "more than half of them, and a quarter");
        assert!(found(&bins(0, &[1.0 / 130.0; 130]), 0.1).is_some());
    }

    #[test]
    fn a_rule_without_doubt_takes_rows_out_of_reach_for_rows() {
        let mut counts = bins(64, &[0.5, 0.45]);
        counts[80] = 50.0;
        let found = |doubt_share, narrower_than| {
            let counts = BinCounts { bins: &counts, noise: 20.0, rows: 1000.0, rows_noise: 0.0 };
            find_range(&counts, 255, RangeRule { spared: 0.01, doubt_share, narrower_than })
        };
        let width = |found: Option<FoundRange>| found.expect("narrow").part[1] * 256.0 / MARGIN.0;
        assert!((width(found(1.0, 0.35)) - 2.0).abs() < 1e-9, "5 % of the rows could be noise");
        assert!((width(found(0.0, 0.35)) - 17.0).abs() < 1e-9);
        assert_eq!(found(0.0, 0.05), None, "1.25 · 17 of 256 bins");
    }

    #[test]
    fn tight_bounds_and_bounds_of_noise_stay() {
        assert_eq!(found(&bins(0, &[1.0 / 256.0; 256]), 1.0, 0.02), BoundsPart::BOUNDS);
        assert_eq!(found(&bins(0, &[-1.0; 256]), 300.0, 0.02), BoundsPart::BOUNDS);
        let empty = BinCounts { bins: &[0.0; 256], noise: 1.0, rows: 1.0, rows_noise: 1.0 };
        assert_eq!(find_part(&empty, 0.0, 1.0), BoundsPart::BOUNDS);
    }
}
