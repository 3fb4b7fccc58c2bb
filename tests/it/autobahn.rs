//! The WebSocket side against the Autobahn cases, by a runner that is not part of the project.

use std::net::TcpListener;
use std::process::Command;

/// Names the runner's program (`kosoku`, a package of Python's).
const RUNNER: &str = "TIDEGATE_KOSOKU";

/// Cases that concern compression, which is not offered, are left out.
#[test]
fn the_autobahn_cases_pass_except_those_of_compression() {
    let Some(runner) = std::env::var_os(RUNNER) else {
        println!("left out: {RUNNER} does not name a runner of the Autobahn cases");
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || tidegate::gateway::echo::serve(&listener));
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(runner)
        .args(["-x", "12.*", "-x", "13.*", "-o"])
        .arg(folder.path())
        .arg(&address)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}{}", String::from_utf8_lossy(&output.stderr));
    let index = std::fs::read_to_string(folder.path().join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let mut cases = 0;
    for (name, case) in index.as_object().unwrap().values().flat_map(|a| a.as_object().unwrap()) {
        cases += 1;
        for behaviour in ["behavior", "behaviorClose"] {
            let passed =
                matches!(case[behaviour].as_str(), Some("OK" | "NON-STRICT" | "INFORMATIONAL"));
            assert!(passed, "case {name}: {case}");
        }
    }
    assert!(cases > 240, "{cases} cases ran");
    println!("{cases} cases passed");
}
