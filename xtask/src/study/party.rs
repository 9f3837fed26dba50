//! Multiparty combiners: a thousand generated parties, people with a phone each, and vehicles.

use std::path::PathBuf;

use fastrand::Rng;

use super::case::{Case, Figures, NON_PRIVATE};
use super::fitted::{Fitted, excess_loss};
use super::normal::{direction, dot, happens, in_ball};
use super::report;
use super::runner::{Runner, Stopwatch, text};
use crate::say;

/// Combiners as typed after `--combiner`; penalties and norms as the sources leave them open.
const COMBINERS: [&str; 11] = [
    "party-statistic",
    "party-soft-labels --penalty 0.01",
    "party-soft-labels --penalty 0.1",
    "party-soft-labels --penalty 1",
    "party-averaging --penalty 0.01",
    "party-averaging --penalty 0.1",
    "party-averaging --penalty 1",
    "party-averaging --penalty 0.01 --norm 3",
    "party-majority --penalty 0.03",
    "party-majority --penalty 0.1",
    "party-majority --penalty 1",
];

const PARTIES: usize = 1000;
const AUXILIARY: usize = 1000;
/// Rows of one generated party.
const OWN_ROWS: usize = 40;
const COLUMNS: usize = 10;
/// Norm of the true weights.
const NORM: f64 = 10.0;
const FRESH_ROWS: usize = 20_000;

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let wisdm = wisdm(runner)?;
    let vehicle = vehicle(runner)?;
    generated(runner)?;
    for (name, sensors) in [("WISDM", wisdm), ("vehicle", vehicle)] {
        measured(runner, name, &sensors)?;
        say(&format!("{name} done"));
    }
    let columns = [
        ("excess_loss", "excess log loss"),
        ("accuracy", "accuracy"),
        ("log_loss", "log loss"),
        ("processor_seconds", "processor seconds"),
    ];
    report::table(runner, &columns);
    Ok(())
}

/// Everything that `reticent party` reads, as places of files.
struct Ballot {
    schema: String,
    auxiliary: String,
    parties: String,
    votes: PathBuf,
}

impl Ballot {
    fn new(runner: &Runner<'_>, name: &str, schema: &str, auxiliary: &str) -> Result<Self, String> {
        let votes = runner.path(&format!("{name}-votes"));
        std::fs::create_dir_all(&votes).map_err(|error| error.to_string())?;
        Ok(Self {
            schema: text(&runner.write(&format!("{name}.toml"), schema)?),
            auxiliary: text(&runner.write(&format!("{name}-auxiliary.csv"), auxiliary)?),
            parties: text(&runner.path(&format!("{name}-parties.txt"))),
            votes,
        })
    }

    fn vote(&self, runner: &Runner<'_>, party: &str, rows: &str) -> Result<(), String> {
        let own = text(&runner.write("own.csv", rows)?);
        let votes = text(&self.votes.join(format!("{party}.csv")));
        let of_party = ["--party", party, "--data", &own, "--out", &votes];
        let on = ["party", "vote", "--schema", &self.schema, "--auxiliary", &self.auxiliary];
        runner.run(&[&on[..], &of_party].concat()).map(drop)
    }

    /// Fits by a combiner, for a fresh ledger: the model's place and the processor seconds.
    fn fit(&self, runner: &Runner<'_>, combiner: &str, epsilon: f64, delta: f64) -> Result<(PathBuf, f64), String> {
        let ledger = PathBuf::from(format!("{}.ledger", self.parties));
        if ledger.exists() {
            std::fs::remove_file(&ledger).map_err(|error| error.to_string())?;
        }
        let (votes, model) = (text(&self.votes), runner.path("model.json"));
        let (epsilon, delta, out) = (epsilon.to_string(), delta.to_string(), text(&model));
        let mut arguments = vec!["party", "fit", "--schema", &self.schema, "--auxiliary", &self.auxiliary];
        arguments.extend(["--parties", &self.parties, "--votes", &votes, "--epsilon", &epsilon, "--delta", &delta]);
        arguments.extend(["--out", &out, "--combiner"]);
        arguments.extend(combiner.split_whitespace());
        let started = Stopwatch::start();
        runner.run(&arguments)?;
        Ok((model, started.seconds()))
    }
}

/// A thousand parties with 40 rows each: excess loss, since the truth is known.
fn generated(runner: &mut Runner<'_>) -> Result<(), String> {
    const DELTA: f64 = 1e-6;
    let mut random = Rng::with_seed(1);
    let truth = direction(&mut random, COLUMNS, NORM);
    let names: Vec<String> = (0..COLUMNS).map(|column| format!("x{column}")).collect();
    let header = names.join(",");
    let line = |row: &[f64]| row.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    let mut schema = String::from(
        "[privacy]\nunit = \"row\"\nadjacency = \"party\"\n[target]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n[features]\n",
    );
    names.iter().for_each(|name| schema.push_str(&format!("{name} = {{ bounds = [-1, 1] }}\n")));
    let public: String = (0..AUXILIARY).map(|_| line(&in_ball(&mut random, COLUMNS)) + "\n").collect();
    let ballot = Ballot::new(runner, "generated", &schema, &format!("{header}\n{public}"))?;
    let mut parties = String::new();
    for party in 0..PARTIES {
        let mut rows = format!("{header},y\n");
        for _ in 0..OWN_ROWS {
            let row = in_ball(&mut random, COLUMNS);
            let class = u8::from(happens(&mut random, dot(&row, &truth)));
            rows.push_str(&format!("{},{class}\n", line(&row)));
        }
        let name = format!("p{party}");
        ballot.vote(runner, &name, &rows)?;
        parties.push_str(&format!("{name}\n"));
    }
    runner.write("generated-parties.txt", &parties)?;
    say("generated parties have voted");
    let fresh: Vec<Vec<f64>> = (0..FRESH_ROWS).map(|_| in_ball(&mut random, COLUMNS)).collect();
    for epsilon in runner.epsilons(&[1.0]) {
        for seed in 0..runner.splits(4) {
            for combiner in COMBINERS {
                let (model, seconds) = ballot.fit(runner, combiner, epsilon, DELTA)?;
                let model = Fitted::read(&model)?;
                let (mut excess, mut right) = (0.0, 0.0);
                for row in &fresh {
                    let (score, found) = (dot(row, &truth), model.score(row));
                    excess += excess_loss(score, found);
                    right += 1.0 / (1.0 + (-score * found.signum()).exp());
                }
                let rows = FRESH_ROWS as f64;
                let figures =
                    [("excess_loss", excess / rows), ("accuracy", right / rows), ("processor_seconds", seconds)];
                let case = Case::private("1000 parties", combiner, "party", epsilon, DELTA);
                runner.add(&case, seed, Figures::from(figures))?;
            }
        }
    }
    say("generated parties done");
    Ok(())
}

/// A real table whose rows belong to parties.
struct Sensors {
    /// TOML without its adjacency filled in, as the schema of a table.
    schema: String,
    header: String,
    /// Party, features, class.
    rows: Vec<(String, String, String)>,
}

/// 30 % of the rows are public and lose their labels, 20 % are for measuring, the others stay with their party.
fn measured(runner: &mut Runner<'_>, name: &str, sensors: &Sensors) -> Result<(), String> {
    const DELTA: f64 = 1e-5;
    let mut random = Rng::with_seed(7);
    let (mut public, mut test) = (format!("{}\n", sensors.header), format!("{},class\n", sensors.header));
    let mut pooled = test.clone();
    let mut own = std::collections::BTreeMap::<&str, String>::new();
    for (party, features, class) in &sensors.rows {
        match random.f64() {
            draw if draw < 0.3 => public.push_str(&format!("{features}\n")),
            draw if draw < 0.5 => test.push_str(&format!("{features},{class}\n")),
            _ => {
                let rows = own.entry(party).or_insert_with(|| format!("{},class\n", sensors.header));
                rows.push_str(&format!("{features},{class}\n"));
                pooled.push_str(&format!("{features},{class}\n"));
            }
        }
    }
    let (test, pooled) = (runner.write("test.csv", &test)?, runner.write("pooled.csv", &pooled)?);
    let open = Case::open(name, NON_PRIVATE);
    let (model, seconds) = runner.fit(&open, &sensors.schema, &pooled, 0)?;
    let mut figures = runner.evaluate(&model, &test)?;
    figures.insert("processor_seconds", seconds);
    runner.add(&open, 0, figures)?;
    let schema = sensors.schema.replace("add-remove", "party");
    let ballot = Ballot::new(runner, name, &schema, &public)?;
    let parties: String = own.keys().map(|party| format!("p{party}\n")).collect();
    runner.write(&format!("{name}-parties.txt"), &parties)?;
    for (party, rows) in &own {
        ballot.vote(runner, &format!("p{party}"), rows)?;
    }
    for epsilon in runner.epsilons(&[1.0, 5.0]) {
        for seed in 0..runner.splits(4) {
            for combiner in COMBINERS {
                let (model, seconds) = ballot.fit(runner, combiner, epsilon, DELTA)?;
                let mut figures = runner.evaluate(&model, &test)?;
                figures.insert("processor_seconds", seconds);
                runner.add(&Case::private(name, combiner, "party", epsilon, DELTA), seed, figures)?;
            }
        }
    }
    Ok(())
}

/// WISDM: what does the owner of a phone do? 36 people.
fn wisdm(runner: &Runner<'_>) -> Result<Sensors, String> {
    let text = runner.data.text("wisdm/WISDM_ar_v1.1_transformed.arff.xz")?;
    let (head, data) = text.split_once("@data").ok_or("WISDM is an ARFF file with @data")?;
    let names: Vec<&str> =
        head.lines().filter_map(|line| line.strip_prefix("@attribute \"")?.split('"').next()).skip(2).collect();
    let mut schema = String::from(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[table]\nmissing = [\"?\", \"\"]\n[target]\ncolumn = \
         \"class\"\nclasses = [\"Walking\", \"Jogging\", \"Upstairs\", \"Downstairs\", \"Sitting\", \
         \"Standing\"]\n[features]\n",
    );
    for name in &names {
        let values = match name {
            // Shares of ten bins, mean accelerations, times between peaks in milliseconds, and spreads.
            name if name[1..].chars().all(|digit| digit.is_ascii_digit()) => "bounds = [0, 0.5]",
            name if name.ends_with("AVG") => "bounds = [-20, 20]",
            name if name.ends_with("PEAK") => "bounds = [0, 10000], missing = 10000",
            _ => "bounds = [0, 30]",
        };
        schema.push_str(&format!("{name} = {{ {values} }}\n"));
    }
    let parse = |line: &str| -> Option<(String, String, String)> {
        let (_, rest) = line.split_once(',')?;
        let (user, rest) = rest.split_once(',')?;
        let (features, class) = rest.rsplit_once(',')?;
        Some((user.trim().to_owned(), features.to_owned(), class.trim().to_owned()))
    };
    let lines = data.lines().map(str::trim).filter(|line| !line.is_empty());
    let rows =
        lines.map(parse).collect::<Option<_>>().ok_or("a row of WISDM has an id, a user, features and a class")?;
    Ok(Sensors { schema, header: names.join(","), rows })
}

/// Vehicle sensors: which of two kinds of vehicle passed? 23 devices.
fn vehicle(runner: &Runner<'_>) -> Result<Sensors, String> {
    let text = runner.data.text("vehicle_sensor/vehicle_train.csv.xz")?;
    let names: Vec<String> = (0..100).map(|feature| format!("f{feature}")).collect();
    let mut schema = String::from(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"class\"\nclasses = [\"negative\", \
         \"positive\"]\n[features]\n",
    );
    names.iter().for_each(|name| schema.push_str(&format!("{name} = {{ bounds = [-4, 4] }}\n")));
    let parse = |line: &str| -> Option<(String, String, String)> {
        let (device, rest) = line.split_once(',')?;
        let (features, class) = rest.rsplit_once(',')?;
        let class = if class.trim().starts_with('-') { "negative" } else { "positive" };
        Some((device.trim().to_owned(), features.to_owned(), class.to_owned()))
    };
    let rows = text.lines().map(parse).collect::<Option<_>>().ok_or("a row has a device, features and a class")?;
    Ok(Sensors { schema, header: names.join(","), rows })
}
