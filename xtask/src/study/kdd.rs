//! KDD Cup 1999: is a connection an attack? 70,000 rows of the 10 % file, as in Iyengar et al. 2019.

use super::case::cases;
use super::report;
use super::runner::Runner;
use super::table::{Table, Target};

const ROWS: usize = 70_000;

/// Columns in the file's order, with the largest value that the description of the data allows; None: categories.
const COLUMNS: [(&str, Option<u64>); 41] = [
    ("duration", Some(60_000)),
    ("protocol_type", None),
    ("service", None),
    ("flag", None),
    ("src_bytes", Some(1_000_000_000)),
    ("dst_bytes", Some(1_000_000_000)),
    ("land", Some(1)),
    ("wrong_fragment", Some(3)),
    ("urgent", Some(10)),
    ("hot", Some(50)),
    ("num_failed_logins", Some(5)),
    ("logged_in", Some(1)),
    ("num_compromised", Some(1000)),
    ("root_shell", Some(1)),
    ("su_attempted", Some(2)),
    ("num_root", Some(1000)),
    ("num_file_creations", Some(50)),
    ("num_shells", Some(5)),
    ("num_access_files", Some(10)),
    ("num_outbound_cmds", Some(1)),
    ("is_host_login", Some(1)),
    ("is_guest_login", Some(1)),
    ("count", Some(511)),
    ("srv_count", Some(511)),
    ("serror_rate", Some(1)),
    ("srv_serror_rate", Some(1)),
    ("rerror_rate", Some(1)),
    ("srv_rerror_rate", Some(1)),
    ("same_srv_rate", Some(1)),
    ("diff_srv_rate", Some(1)),
    ("srv_diff_host_rate", Some(1)),
    ("dst_host_count", Some(255)),
    ("dst_host_srv_count", Some(255)),
    ("dst_host_same_srv_rate", Some(1)),
    ("dst_host_diff_srv_rate", Some(1)),
    ("dst_host_same_src_port_rate", Some(1)),
    ("dst_host_srv_diff_host_rate", Some(1)),
    ("dst_host_serror_rate", Some(1)),
    ("dst_host_srv_serror_rate", Some(1)),
    ("dst_host_rerror_rate", Some(1)),
    ("dst_host_srv_rerror_rate", Some(1)),
];

/// The service `other` is where the schema puts what is not listed.
const CATEGORIES: [(&str, &str); 3] = [
    ("protocol_type", "tcp udp icmp"),
    ("flag", "SF S0 REJ RSTR RSTO SH S1 S2 RSTOS0 S3 OTH"),
    (
        "service",
        "http smtp finger domain_u auth telnet ftp eco_i ntp_u ecr_i private pop_3 ftp_data rje time mtp link \
         remote_job gopher ssh name whois domain login imap4 daytime ctf nntp shell IRC nnsp http_443 exec printer efs \
         courier uucp klogin kshell echo discard systat supdup iso_tsap hostnames csnet_ns pop_2 sunrpc uucp_path \
         netbios_ns netbios_ssn netbios_dgm sql_net vmnet bgp Z39_50 ldap netstat urh_i X11 urp_i pm_dump tftp_u tim_i \
         red_i aol harvest http_2784 http_8001",
    ),
];

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let table = read(runner)?;
    let adjacencies = runner.adjacencies(&["add-remove"]);
    let all = cases("kdd", &["noisy-gd"], &adjacencies, &runner.epsilons(&[0.01, 0.1, 1.0]), table.delta());
    for seed in 0..runner.splits(3) {
        let split = table.split(runner, seed, Target::Class)?;
        runner.compare(&all, &table.schema, &split, seed)?;
    }
    report::table(runner, report::CLASSES);
    Ok(())
}

fn read(runner: &Runner<'_>) -> Result<Table, String> {
    let text = runner.data.text("kddcup99/kddcup.data_10_percent.gz")?;
    let mut lines: Vec<&str> = text.lines().collect();
    fastrand::Rng::with_seed(99).shuffle(&mut lines);
    lines.truncate(ROWS);
    let rows = lines
        .into_iter()
        .map(|line| {
            let (features, label) = line.rsplit_once(',').ok_or("a row of KDD 1999 has columns")?;
            Ok(format!("{features},{}", if label.starts_with("normal") { "normal" } else { "attack" }))
        })
        .collect::<Result<_, String>>()?;
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let mut schema = String::from(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"label\"\nclasses = [\"normal\", \
         \"attack\"]\n[features]\n",
    );
    for (name, largest) in COLUMNS {
        let values = match largest {
            Some(largest) => format!("bounds = [0, {largest}]"),
            None => {
                let all =
                    CATEGORIES.iter().find(|(known, _)| *known == name).expect("a column without bounds has them").1;
                let quoted: Vec<String> = all.split_whitespace().map(|one| format!("\"{one}\"")).collect();
                format!("categories = [{}]", quoted.join(", "))
            }
        };
        schema.push_str(&format!("{name} = {{ {values} }}\n"));
    }
    Ok(Table { header: format!("{},label", names.join(",")), rows, schema })
}
