//! Marks. Their names, which are those of the workload's steps, are needed by tables and `--phase`.
//! Only known numbers in their details are kept.

use fscost_recording::Mark;
use serde_json::{Map, Value};

/// Kept details: the kernel's counters of each disk, the times of the workload's sync calls, the
/// interval of periodic journal commits, and whether the following interval is measured.
const KEPT: [&str; 4] = ["kernel", "sync_calls", "commit_s", "measured"];

/// Returns the mark with its name and the known numbers.
pub fn strip(mark: Mark) -> Mark {
    let details = mark.detail.as_object().into_iter().flatten();
    let kept: Map<_, _> = details
        .filter(|(name, _)| KEPT.contains(&name.as_str()))
        .filter_map(named_numbers)
        .collect();
    let detail = match kept.is_empty() {
        true => Value::Null,
        false => kept.into(),
    };
    Mark { detail, ..mark }
}

/// Returns only numbers and Booleans, in lists and objects.
fn numbers(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) | Value::Bool(_) => Some(value.clone()),
        Value::Array(list) => Some(list.iter().filter_map(numbers).collect()),
        Value::Object(fields) => {
            let kept = fields.iter().filter_map(named_numbers);
            Some(Value::Object(kept.collect()))
        }
        _ => None,
    }
}

fn named_numbers((name, value): (&String, &Value)) -> Option<(String, Value)> {
    Some((name.clone(), numbers(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_stay_and_nothing_else() {
        let mark = |detail| Mark {
            name: "make".into(),
            detail,
        };
        let given = json!({
            "kernel": {"main": {"write_bytes": 4096, "host": "me"}},
            "sync_calls": {
                "count": 2, "after_us": [10, 20, "me"], "callers": [{"inode": 12, "name": "me"}],
            },
            "measured": false,
            "command": "make", "pid": 1,
        });
        let kept = json!({
            "kernel": {"main": {"write_bytes": 4096}},
            "sync_calls": {"count": 2, "after_us": [10, 20], "callers": [{"inode": 12}]},
            "measured": false,
        });
        assert_eq!(strip(mark(given)), mark(kept));
        assert_eq!(strip(mark(json!("secret"))), mark(Value::Null));
    }
}
