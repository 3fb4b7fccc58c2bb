//! Limits shown and changed: for all, for one, and not at all.

use serde_json::json;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_shown_as_the_configuration_spells_them() {
    let running = Running::start().await;
    let shown = running.json("/v1/limits").await;
    for (key, value) in [
        ("generation", json!(1)),
        ("capacity", json!(8)),
        ("max_hz", json!(0)),
        ("max_subscribers", json!(1000)),
        ("confirm", json!("pong")),
        ("stall_timeout", json!("30s")),
    ] {
        assert_eq!(shown[key], value, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b66_a_change_for_all_reaches_limits_limiters_settings_and_clients() {
    let running = Running::start().await;
    let mut client = running.subscribe().await;
    let before = running.json("/v1/limits").await["generation"].as_u64().unwrap();
    let answer = running
        .patch(r#"{"capacity":2,"max_hz":50,"max_subscribers":7,"stall_timeout":"9s"}"#)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let state = answer.json();
    assert_eq!(state["generation"], before + 1, "one change, one generation");
    assert_eq!((&state["capacity"], &state["max_hz"]), (&json!(2), &json!(50)));
    assert_eq!((&state["max_subscribers"], &state["stall_timeout"]), (&json!(7), &json!("9s")));
    assert_eq!(running.json("/v1/limits").await, state);
    assert_eq!(running.gateway.control().admission().capacity(), 7);
    assert_eq!(running.config.effective().subscriber.capacity, 2);
    let told = client.next("limits").await;
    assert_eq!(told["generation"], state["generation"]);
    assert_eq!(told["effective"], json!({"max_hz": 50, "capacity": 2, "confirm": "pong"}));
    let one = running.json("/v1/subscribers").await[0].clone();
    assert_eq!((&one["capacity"], &one["max_hz"]), (&json!(2), &json!(50)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_for_one_leaves_the_others_and_gives_way_to_a_change_for_all() {
    let running = Running::start().await;
    let (_one, _other) = (running.subscribe().await, running.subscribe().await);
    let ids: Vec<String> = running
        .json("/v1/subscribers")
        .await
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    let body = format!(r#"{{"subscriber":"{}","capacity":0,"max_hz":2.5}}"#, ids[0]);
    let answer = running.patch(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let state = answer.json();
    assert_eq!(state["subscriber"], ids[0]);
    assert_eq!((&state["capacity"], &state["max_hz"]), (&json!(0), &json!(2.5)));
    assert_eq!((&state["all"]["capacity"], &state["all"]["max_hz"]), (&json!(8), &json!(0)));
    assert_eq!(running.json(&format!("/v1/limits?subscriber={}", ids[0])).await, state);
    let capacities = async || {
        let shown = running.json("/v1/subscribers").await;
        [shown[0]["capacity"].clone(), shown[1]["capacity"].clone()]
    };
    assert_eq!(capacities().await, [0, 8]);
    assert_eq!(running.patch(r#"{"max_hz":5}"#).await.status, 200);
    assert_eq!(capacities().await, [0, 8], "another key for all leaves the one's capacity");
    assert_eq!(running.patch(r#"{"capacity":8}"#).await.status, 200);
    assert_eq!(capacities().await, [8, 8], "for all means all, also with the same value");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_change_names_its_key_and_changes_nothing() {
    let running = Running::start().await;
    let client = running.subscribe().await;
    let id = running.json("/v1/subscribers").await[0]["id"].as_str().unwrap().to_owned();
    let before = running.json("/v1/limits").await;
    let refused: Vec<(String, u16, &str)> = vec![
        ("".into(), 400, "body"),
        ("capacity=4".into(), 400, "body"),
        ("[]".into(), 400, "body"),
        ("null".into(), 400, "body"),
        ("\u{fffd}\0".into(), 400, "body"),
        (r#"{"capacity":4"#.into(), 400, "body"),
        (r#"{"capacity":4,"capacity":5}"#.into(), 400, "capacity"),
        ("{}".into(), 400, "no key"),
        (r#"{"capacty":4}"#.into(), 400, "capacty"),
        (r#"{"capacity":-1}"#.into(), 400, "capacity"),
        (r#"{"capacity":1.5}"#.into(), 400, "capacity"),
        (r#"{"capacity":"4"}"#.into(), 400, "capacity"),
        (r#"{"capacity":null}"#.into(), 400, "capacity"),
        (r#"{"capacity":9999999999}"#.into(), 400, "capacity"),
        (r#"{"capacity":99999999999999999999999}"#.into(), 400, "capacity"),
        (r#"{"capacity":2,"max_hz":-1}"#.into(), 400, "max_hz"),
        (r#"{"capacity":2,"max_subscribers":true}"#.into(), 400, "max_subscribers"),
        (r#"{"capacity":2,"stall_timeout":"30"}"#.into(), 400, "stall_timeout"),
        (r#"{"capacity":2,"gateway.listen":"127.0.0.1:1"}"#.into(), 400, "gateway.listen"),
        (r#"{"capacity":2,"generation":9}"#.into(), 400, "generation"),
        (format!(r#"{{"subscriber":"{id}"}}"#), 400, "nothing to change"),
        (format!(r#"{{"subscriber":{id},"capacity":1}}"#), 400, "subscriber"),
        (format!(r#"{{"subscriber":"{id}","capacity":-1}}"#), 400, "capacity"),
        (format!(r#"{{"subscriber":"{id}","capacity":9999999999}}"#), 400, "capacity"),
        (format!(r#"{{"subscriber":"{id}","capacity":2,"max_hz":"5"}}"#), 400, "max_hz"),
        (format!(r#"{{"subscriber":"{id}","capacity":2,"max_hz":1e9}}"#), 400, "max_hz"),
        (format!(r#"{{"subscriber":"{id}","capacity":2,"pace":"1ms"}}"#), 400, "pace"),
        (r#"{"subscriber":"99","capacity":2}"#.into(), 404, "99"),
        (r#"{"subscriber":"nobody","capacity":2}"#.into(), 404, "nobody"),
    ];
    for (body, status, named) in refused {
        let answer = running.patch(&body).await;
        assert_eq!(answer.status, status, "{body} was answered {}", answer.body);
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(named), "{body}: {error}");
        assert_eq!(running.json("/v1/limits").await, before, "{body}");
    }
    assert_eq!(running.json("/v1/subscribers").await[0]["capacity"], 8);
    *running.config.part.refuse.lock().unwrap() = true;
    let answer = running.patch(r#"{"capacity":2}"#).await;
    assert_eq!(answer.status, 500);
    assert!(answer.body.contains("told to refuse"), "{}", answer.body);
    assert_eq!(running.json("/v1/limits").await, before);
    drop(client);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_leaves_an_override_alone_unless_the_file_changes_that_key() {
    let running = Running::start().await;
    running.patch(r#"{"capacity":3}"#).await;
    let reload = || http::request(running.admin, "POST", "/-/reload", &[], b"");
    running.config.write("subscriber.max_hz = 20");
    let answer = reload().await;
    assert_eq!(answer.status, 200);
    let generation = running.json("/v1/limits").await["generation"].clone();
    assert_eq!(
        answer.json(),
        json!({"generation": generation, "applied": ["subscriber.max_hz"], "needs_restart": []})
    );
    let shown = running.json("/v1/limits").await;
    assert_eq!((&shown["capacity"], &shown["max_hz"]), (&json!(3), &json!(20)));
    running.config.write("subscriber.max_hz = 20\nsubscriber.capacity = 5\ngateway.shards = 3");
    let answer = reload().await.json();
    assert_eq!(answer["applied"], json!(["subscriber.capacity"]));
    assert_eq!(answer["needs_restart"], json!(["gateway.shards"]));
    assert_eq!(running.json("/v1/limits").await["capacity"], 5);
    let again = reload().await.json();
    assert_eq!(again["applied"], json!([]), "unchanged content applies nothing");
    assert_eq!(again["needs_restart"], json!(["gateway.shards"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn b85_a_bad_file_is_told_with_line_and_key_and_changes_nothing() {
    let running = Running::start().await;
    let before = (running.json("/v1/limits").await, running.json("/v1/config").await);
    let reload = || http::request(running.admin, "POST", "/-/reload", &[], b"");
    running.config.write("subscriber.capacity = 2\nsubscriber.max_hz = \"fast\"\ngateway.pase = 1");
    let answer = reload().await;
    assert_eq!(answer.status, 422);
    let errors = answer.json()["errors"].as_array().unwrap().clone();
    let places: Vec<_> =
        errors.iter().map(|error| (error["line"].clone(), error["key"].clone())).collect();
    assert_eq!(places, [(json!(2), json!("subscriber.max_hz")), (json!(3), json!("gateway.pase"))]);
    assert!(errors.iter().all(|error| error["message"].is_string()));
    *running.config.text.lock().unwrap() = None;
    let answer = reload().await;
    assert_eq!(answer.status, 422);
    assert!(answer.body.contains("tidegate.toml"), "{}", answer.body);
    running.config.write("subscriber.capacity = 2");
    *running.config.part.refuse.lock().unwrap() = true;
    let answer = reload().await;
    assert_eq!(answer.status, 500);
    assert!(answer.json()["errors"][0]["message"].as_str().unwrap().contains("told to refuse"));
    assert_eq!((running.json("/v1/limits").await, running.json("/v1/config").await), before);
    *running.config.part.refuse.lock().unwrap() = false;
    assert_eq!(reload().await.json()["applied"], json!(["subscriber.capacity"]), "tried again");
}
