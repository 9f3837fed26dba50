//! `reticent audit`: lower bounds that stay below the claim and come close to it.

use crate::support::{Folder, json, number};

/// Lower bound over claim of one audit at mu 1.
fn share(arguments: &str) -> f64 {
    let found = json(&Folder::new().succeed(&format!("{arguments} --mu 1 --confidence 0.99999 --json")));
    assert!(number(&found["false_alarms"]) > 0.0, "a test without errors measures nothing: {found}");
    number(&found["lower_bound"]["mu_over_claim"])
}

/// With 2,000 fits of each neighbour and this confidence the bound of a tight mechanism is .72 ± .043 of the claim; it passes 1 in
/// fewer than 1 run of 100,000, and .5 in all but 1 of 10^6. The test for `noisy-gd` is learnt from hundreds of bins, too, most of
/// which tell nothing of the row; for 30 rows none are bought, but more counts, and the bound is .65.
#[test]
fn a_mechanism_without_slack_is_seen_at_most_of_its_claim() {
    // A start model that is sure of the other class gives every pass its largest slope.
    let tight = [
        ("audit --method gram --scaling bounds", 0.5),
        ("audit --method walr --rows 30", 0.5),
        ("audit --method noisy-gd --passes 4 --rows 30", 0.4),
        ("audit --method noisy-gd --passes 4", 0.25),
        ("party audit --others 0", 0.5),
    ];
    for (line, least) in tight {
        let found = share(&format!("{line} --runs 2000"));
        assert!(found > least && found < 1.0, "{line}: {found}");
    }
}

/// The sum of the parties' models moves by twice the norm bound when a party turns round; few rows are enough.
#[test]
fn votes_of_parties_are_audited_under_their_own_question() {
    let folder = Folder::new();
    folder.write("schema.toml", PARTY.replace("\"no\", \"yes\"", "\"no\", \"perhaps\", \"yes\""));
    folder.write("public.csv", "a\n0\n0.25\n0.5\n1\n");
    let line = "party audit --schema schema.toml --auxiliary public.csv --others 2 --combiner party-averaging --norm 0.5 \
                --penalty 0.01 --mu 1 --confidence 0.99999 --runs 400 --json";
    let found = json(&folder.succeed(line));
    let share = number(&found["lower_bound"]["mu_over_claim"]);
    assert!(share < 1.0, "{found}");
    assert!(found["pair"].as_str().is_some_and(|pair| pair.contains("of 2 others")), "{found}");
    assert_eq!(found["relation"], "row:party", "{found}");
    let refused = folder.refuse(2, "party audit --schema schema.toml --mu 1");
    assert!(refused.contains("--auxiliary"), "{refused}");
}

/// A start model of the user's takes the place of those that are tried.
#[test]
fn a_fit_from_a_public_model_is_audited_with_it() {
    let folder = Folder::new();
    folder.write(
        "schema.toml",
        PARTY.replace("party", "add-remove").replace("unit = \"row\"", "unit = \"row\"\nrows = 20"),
    );
    folder.write("public.csv", "a,y\n0,no\n0.25,no\n0.5,yes\n1,yes\n0.1,yes\n0.9,no\n");
    folder.succeed("fit-public --data public.csv --schema schema.toml --out start.json");
    let line = "audit --schema schema.toml --init start.json --method noisy-gd-lecture --passes 3 --mu 1 --confidence 0.99999 --runs 300 --json";
    let found = json(&folder.succeed(line));
    assert!(found["pair"].as_str().is_some_and(|pair| pair.ends_with("start model as given")), "{found}");
    assert!(number(&found["lower_bound"]["mu_over_claim"]) < 1.0, "{found}");
}

#[test]
fn replace_and_a_unit_of_several_rows_are_audited_under_their_own_schema() {
    let folder = Folder::new();
    folder.write(
        "schema.toml",
        "[privacy]\nunit = { column = \"person\", rows_max = 3 }\nadjacency = \"replace\"\nrows = 20\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \
         \"yes\"]\n[features]\na = { bounds = [0, 1] }\n",
    );
    let found = json(&folder.succeed(
        "audit --schema schema.toml --method output-perturbation --mu 1.5 --confidence 0.99999 --runs 1000 --rows 20 --plot plot.svg --json",
    ));
    let share = number(&found["lower_bound"]["mu_over_claim"]);
    assert!(share < 1.0, "{found}");
    let plot = folder.text("plot.svg");
    assert!(plot.starts_with("<svg") && plot.contains("observed") && plot.contains("claimed"), "{plot:.200}");
}

/// Laplace noise of epsilon 4 keeps no mu of .84, which epsilon 4 at delta 1e-6 is: it is charged, and held, to 2 Φ⁻¹(e⁴ / (1 + e⁴)).
#[test]
fn pure_epsilon_is_held_to_the_mu_that_a_ledger_is_charged() {
    let folder = Folder::new();
    folder.write(
        "schema.toml",
        PARTY.replace("party", "add-remove").replace("classes = [\"no\", \"yes\"]", "bounds = [-1, 1]"),
    );
    let line = "audit --schema schema.toml --method functional --epsilon 4 --confidence 0.99999 --runs 3000 --rows 1 --plot \
                plot.svg --json";
    let found = json(&folder.succeed(line));
    // Python's statistics.NormalDist: 4.194478086; the noise is of a whole scale, its mu a little less.
    let claimed = number(&found["claimed"]["mu"]);
    assert!((4.19447..4.194_478_086).contains(&claimed), "{found}");
    let bound = &found["lower_bound"];
    assert!(number(&bound["mu"]) > 0.9, "more than the mu of (epsilon, delta): {found}");
    assert!((number(&bound["mu_over_claim"]) * claimed - number(&bound["mu"])).abs() < 1e-9, "{found}");
    assert!(folder.text("plot.svg").contains("(mu 4.19"), "the curve of the same claim");
}

#[test]
fn an_audit_reads_no_table_and_refuses_parties() {
    let folder = Folder::new();
    folder.write("schema.toml", PARTY);
    let refused = folder.refuse(2, "audit --schema schema.toml --mu 1");
    assert!(refused.contains("party adjacency"), "{refused}");
    let refused = folder.refuse(2, "audit --method gram");
    assert!(refused.contains("--mu"), "{refused}");
}

const PARTY: &str = "[privacy]\nunit = \"row\"\nadjacency = \"party\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n[features]\na = { bounds = [0, 1] }\n";
