//! `reticent party`: from parties' own rows to a model, and every votes file that is refused.

use std::fs;

use crate::support::{Folder, SCHEMA, Table, is_close, json, number};

const PARTIES: [&str; 4] = ["east", "north", "south", "west"];
const FIT: &str = "party fit --schema party.toml --auxiliary public.csv --parties parties.txt --votes votes --epsilon 3 \
                   --delta 1e-6 --out party.json";

/// Four parties with the usual table in parts, and its rows as public ones.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.remove("model.json");
    folder.write("party.toml", SCHEMA.replace("add-remove", "party"));
    folder.write("parties.txt", PARTIES.join("\n"));
    fs::create_dir(folder.path("votes")).expect("the folder can be written");
    let Table(rows) = Table::usual();
    folder.write("public.csv", Table(rows[..100].to_vec()).csv());
    for (place, party) in PARTIES.iter().enumerate() {
        let own = rows.iter().skip(100 + place).step_by(PARTIES.len()).cloned().collect();
        folder.write(&format!("{party}.csv"), Table(own).csv());
        let said = folder.succeed(&format!(
            "party vote --schema party.toml --auxiliary public.csv --party {party} --data {party}.csv --out votes/{party}.csv"
        ));
        assert!(said.contains("NOT private by themselves"), "{said}");
    }
    folder
}

#[test]
fn four_parties_make_a_model_by_every_combiner() {
    let folder = folder();
    let planned = json(&folder.succeed(
        "party plan --schema party.toml --auxiliary public.csv --parties parties.txt --epsilon 3 --delta 1e-6 --json",
    ));
    assert_eq!(planned["plan"]["method"], "party-statistic");
    let mut spent = 0.0;
    for combiner in ["party-statistic", "party-soft-labels", "party-majority", "party-averaging"] {
        let said = json(&folder.succeed(&format!("{FIT} --combiner {combiner} --json")));
        assert_eq!(said["certificate"]["method"], combiner);
        assert_eq!(said["certificate"]["relation"]["adjacency"], "party");
        let public = said["certificate"]["public"].to_string();
        assert!(public.contains("100 auxiliary rows") && public.contains("4 parties"), "{public}");
        spent += number(&said["certificate"]["mu"]).powi(2);
        folder.succeed("show party.json");
        folder.succeed("predict --model party.json --data public.csv --out scored.csv");
    }
    assert!(is_close(folder.spent("votes.ledger"), spent.sqrt(), 1e-6), "every fit is charged");
}

/// Behind one row's label may be what a party votes on all rows.
#[test]
fn votes_have_a_price_under_party_adjacency_alone() {
    let folder = folder();
    for adjacency in ["label", "replace", "add-remove"] {
        folder.write("party.toml", SCHEMA.replace("add-remove", adjacency));
        // The parties learn of it, too, before they have voted.
        for command in [
            FIT,
            "party plan --schema party.toml --auxiliary public.csv --parties parties.txt --epsilon 3 --delta 1e-6",
            "party vote --schema party.toml --auxiliary public.csv --party east --data east.csv --out east-votes.csv",
            "party ballot --schema party.toml --auxiliary public.csv --party east --out east-votes.csv",
        ] {
            let message = folder.refuse(2, command);
            assert!(
                message.contains(&format!("party.toml: the schema says {adjacency}, and votes protect all")),
                "{message}"
            );
        }
    }
    folder.write("party.toml", SCHEMA.replace("add-remove", "party").replace("\"no\"", "\"n\\no\""));
    let message = folder.refuse(2, FIT);
    assert!(message.contains("party.toml: the class \"n\\no\" has a line break"), "{message}");
    assert!(!folder.exists("votes.ledger") && !folder.exists("party.json"));
}

#[test]
fn a_ballot_has_to_be_filled_in() {
    let folder = folder();
    folder.remove("votes/west.csv");
    folder.succeed("party ballot --schema party.toml --auxiliary public.csv --party west --out votes/west.csv");
    let message = folder.refuse(3, FIT);
    assert!(message.contains("party west") && message.contains("line 5"), "{message}");
    let filled: String = folder
        .text("votes/west.csv")
        .lines()
        .map(|line| if line.ends_with(',') { format!("{line}no\n") } else { format!("{line}\n") })
        .collect();
    folder.write("votes/west.csv", filled);
    folder.succeed(FIT);
}

#[test]
fn a_blank_ballot_replaces_nothing() {
    let folder = folder();
    let votes = folder.text("votes/west.csv");
    let ballot = "party ballot --schema party.toml --auxiliary public.csv --party west --out votes/west.csv";
    let message = folder.refuse(5, ballot);
    assert!(message.contains("votes/west.csv: there is a file already") && message.contains("remove it"), "{message}");
    assert_eq!(folder.text("votes/west.csv"), votes);
    folder.remove("votes/west.csv");
    folder.succeed(ballot);
}

/// The model would be votes of nobody for the next command.
#[test]
fn no_model_goes_among_the_votes() {
    let folder = folder();
    for place in ["votes/party.json", "votes/.party.json", "./votes/../votes/west.csv"] {
        let message = folder.refuse(2, &FIT.replace("party.json", place));
        assert!(message.contains("may hold nothing but votes"), "{message}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path("votes"), folder.path("link")).expect("a link");
        assert!(folder.refuse(2, &FIT.replace("party.json", "link/party.json")).contains("nothing but votes"));
    }
    assert!(!folder.exists("votes.ledger"), "nothing was charged");
    folder.succeed(FIT);
}

#[test]
fn refused_votes_cost_nothing_and_name_the_party() {
    let folder = folder();
    let good = folder.text("votes/north.csv");
    let refused = |part: &str| {
        let message = folder.refuse(3, FIT);
        assert!(message.contains("north") && message.contains(part), "{message}");
    };
    for (text, part) in [
        (good.replace("# party: north", "# party: south"), "not the file of this party"),
        (good.replace("votes 1", "votes 9"), "no votes file"),
        (good.replace("\n50,", "\n49,"), "row 50 belongs here"),
        (good.lines().take(60).collect::<Vec<_>>().join("\n"), "is missing"),
        (format!("{good}101,no\n"), "only 100 rows"),
        (good.replace(",no", ",maybe"), "none of the schema's classes"),
    ] {
        folder.write("votes/north.csv", text);
        refused(part);
    }
    folder.remove("votes/north.csv");
    refused("there is no file");
    folder.write("votes/north.csv", &good);
    folder.write("votes/stranger.csv", &good);
    let message = folder.refuse(3, FIT);
    assert!(message.contains("stranger.csv"), "{message}");
    folder.remove("votes/stranger.csv");
    // The same votes about other public rows.
    let public = folder.text("public.csv");
    folder.write("public.csv", public.replacen('1', "2", 1));
    let message = folder.refuse(3, FIT);
    assert!(message.contains("another auxiliary file"), "{message}");
    assert!(!folder.exists("votes.ledger"), "nothing was charged");
}

#[test]
fn what_cannot_be_combined_is_refused_before_votes_are_read() {
    let folder = folder();
    let message = folder.refuse(2, &FIT.replace("party.toml", "schema.toml"));
    assert!(message.contains("schema.toml: the schema says add-remove"), "{message}");
    let schema = folder.text("party.toml");
    folder.write("party.toml", schema.replace("\"row\"", "{ column = \"patient\", rows_max = 4 }"));
    let message = folder.refuse(2, FIT);
    assert!(message.contains("the schema's privacy unit is the column \"patient\""), "{message}");
    folder.write("party.toml", schema);
    let message = folder.refuse(2, &format!("{FIT} --combiner party-majority --penalty 0"));
    assert!(message.contains("--penalty must be"), "{message}");
    let message = folder.refuse(2, &format!("{FIT} --penalty 1"));
    assert!(message.contains("has no option --penalty") || message.contains("no options"), "{message}");
    folder.write("parties.txt", "east\nEast\n");
    assert!(folder.refuse(2, FIT).contains("line 2"), "a party twice");
    folder.write("parties.txt", "../east\n");
    assert!(folder.refuse(2, FIT).contains("is not a name"), "a party outside the folder");
}
