//! Collects measurements and compares them with the goals.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::audit::Audit;
use crate::stats::{Latency, Spread};
use crate::subject::Backend;

/// A measured run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trial {
    pub(crate) scenario: String,
    pub(crate) backend: Backend,
    /// From 1.
    pub(crate) round: usize,
    pub(crate) connections: usize,
    /// 202 responses in the measured window.
    pub(crate) count: u64,
    /// Messages per second.
    pub(crate) rate: f64,
    /// Requests per second of the baseline, right before or after.
    pub(crate) baseline: Option<f64>,
    pub(crate) latency: Latency,
    /// Settled / accepted messages in the window.
    pub(crate) settled_share: Option<f64>,
    /// CPU of the server per message, in microseconds (= milliseconds per 1,000).
    pub(crate) cpu_us: f64,
    /// The same for the database's processes; `None` if they run on another machine.
    pub(crate) cpu_database_us: Option<f64>,
    pub(crate) idle_mb: f64,
    pub(crate) peak_mb: f64,
    /// Time of an append and fdatasync on the same disk, without load.
    pub(crate) sync_ms: Option<f64>,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) first_error: Option<String>,
    /// Covers everything sent to the server of this run.
    pub(crate) audit: Audit,
}

impl Trial {
    /// Returns whether all responses were 202 and the audit passed.
    pub(crate) fn clean(&self) -> bool {
        self.errors.is_empty() && self.audit.passed()
    }

    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.rate / self.baseline?)
    }

    /// CPU of server and database together.
    pub(crate) fn cpu_total_us(&self) -> Option<f64> {
        Some(self.cpu_us + self.cpu_database_us?)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Verdict {
    /// Also meets the stretch goal.
    Stretch,
    Met,
    Missed,
    /// A run had errors or failed its audit.
    Unclean,
    NotMeasured,
    /// No goal.
    Informative,
}

/// A row of the result.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    /// Number of the goal; `–` if none.
    pub(crate) goal: &'static str,
    pub(crate) work: String,
    pub(crate) backend: Backend,
    pub(crate) unit: &'static str,
    pub(crate) required: Option<Bound>,
    pub(crate) stretch: Option<Bound>,
    /// One figure per run.
    pub(crate) samples: Vec<f64>,
    pub(crate) clean: bool,
}

impl Row {
    /// Creates a row from `trials`; `figure` returns the figure of each.
    pub(crate) fn new<'a>(
        goal: &'static str,
        work: impl Into<String>,
        backend: Backend,
        unit: &'static str,
        trials: impl IntoIterator<Item = &'a Trial>,
        figure: impl Fn(&Trial) -> Option<f64>,
    ) -> Self {
        let trials: Vec<&Trial> = trials.into_iter().collect();
        Self {
            goal,
            work: work.into(),
            backend,
            unit,
            required: None,
            stretch: None,
            samples: trials.iter().filter_map(|trial| figure(trial)).collect(),
            clean: trials.iter().all(|trial| trial.clean()),
        }
    }

    pub(crate) fn asks(mut self, required: Bound, stretch: Option<Bound>) -> Self {
        (self.required, self.stretch) = (Some(required), stretch);
        self
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let Some(spread) = Spread::of(&self.samples) else {
            return Verdict::NotMeasured;
        };
        if !self.clean {
            return Verdict::Unclean;
        }
        let met = |bound: Option<Bound>| bound.is_some_and(|bound| bound.met(spread.median));
        match self.required {
            None => Verdict::Informative,
            Some(_) if !met(self.required) => Verdict::Missed,
            Some(_) if met(self.stretch) => Verdict::Stretch,
            Some(_) => Verdict::Met,
        }
    }
}

/// All results of a run of this program.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Book {
    pub(crate) rows: Vec<Row>,
    pub(crate) trials: Vec<Trial>,
    /// Notes for readers of the rows.
    pub(crate) notes: Vec<String>,
    /// What could not be measured, with reasons.
    pub(crate) failures: Vec<String>,
}

impl Book {
    /// Returns whether every run worked and passed its audit, even if goals were missed.
    pub(crate) fn sound(&self) -> bool {
        self.failures.is_empty() && self.trials.iter().all(|trial| trial.audit.passed())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn trial(rate: f64) -> Trial {
        Trial {
            scenario: "accept".into(),
            backend: Backend::Sqlite,
            round: 1,
            connections: 64,
            count: 10,
            rate,
            baseline: Some(100.0),
            latency: Latency::default(),
            settled_share: Some(1.0),
            cpu_us: 20.0,
            cpu_database_us: Some(5.0),
            idle_mb: 20.0,
            peak_mb: 30.0,
            sync_ms: None,
            errors: BTreeMap::new(),
            first_error: None,
            audit: Audit::default(),
        }
    }

    fn row(rates: &[f64]) -> Row {
        let trials: Vec<Trial> = rates.iter().map(|&rate| trial(rate)).collect();
        Row::new("1", "accept", Backend::Sqlite, "×", &trials, Trial::ratio).asks(Bound::AtLeast(0.15), Some(Bound::AtLeast(0.25)))
    }

    #[test]
    fn the_median_decides_the_verdict() {
        assert_eq!(row(&[30.0, 30.0, 1.0]).verdict(), Verdict::Stretch);
        assert_eq!(row(&[15.0, 30.0, 1.0]).verdict(), Verdict::Met);
        assert_eq!(row(&[14.0, 30.0, 1.0]).verdict(), Verdict::Missed);
        assert_eq!(row(&[]).verdict(), Verdict::NotMeasured);
        let at_most = row(&[30.0]).asks(Bound::AtMost(0.2), None);
        assert_eq!(at_most.verdict(), Verdict::Missed);
    }

    #[test]
    fn a_goal_is_not_met_by_a_run_with_errors_or_losses() {
        let mut failing = trial(50.0);
        failing.errors.insert("503".into(), 1);
        let mut losing = trial(50.0);
        losing.audit.lost = 1;
        for bad in [failing, losing] {
            let trials = [trial(50.0), bad];
            let row = Row::new("1", "accept", Backend::Sqlite, "×", &trials, Trial::ratio).asks(Bound::AtLeast(0.15), None);
            assert_eq!(row.verdict(), Verdict::Unclean);
        }
    }

    #[test]
    fn a_lost_message_makes_the_whole_book_unsound() {
        let mut book = Book { trials: vec![trial(1.0)], ..Book::default() };
        assert!(book.sound());
        book.trials[0].audit.lost = 1;
        assert!(!book.sound());
        let failed = Book { failures: vec!["no database".into()], ..Book::default() };
        assert!(!failed.sound());
    }
}
