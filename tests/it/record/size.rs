//! How small a recording is that is flushed twice a second.

use std::time::Duration;

use tidegate::feed::{Recorder, RecorderOptions, SimulateOptions, Simulator};

#[test]
fn a_recording_of_a_thousand_records_a_second_is_nearly_as_small_as_one_frame() {
    for rate in [1_000, 5_000] {
        let options = SimulateOptions {
            duration: Duration::from_secs(30),
            rate,
            ..SimulateOptions::default()
        };
        let mut simulator = Simulator::new(options).unwrap();
        let mut recorder = Recorder::new(Vec::new(), RecorderOptions::default()).unwrap();
        while let Some((time, text)) = simulator.next() {
            recorder.message(time, text).unwrap();
        }
        let (file, _) = recorder.finish().unwrap();
        let lines = zstd::decode_all(file.as_slice()).unwrap();
        let one_frame = zstd::bulk::compress(&lines, 3).unwrap();
        let ratio = file.len() as f64 / one_frame.len() as f64;
        println!("{rate} a second: {ratio:.3} of one frame");
        assert!(ratio <= 1.1, "{rate} a second: {ratio:.3} of one frame");
    }
}
