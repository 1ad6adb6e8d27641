//! Draws charts on the server. Series differ by lightness and hatching; a table holds every figure.

use maud::{Markup, html};

/// Height in pixels, without the labels.
const HEIGHT: f64 = 144.0;
/// Maximum number of series.
pub(crate) const SERIES: usize = 3;
/// Maximum number of labels.
const LABELS: usize = 8;

/// A stacked column chart over time.
pub(crate) struct Columns<'a> {
    /// Unique on the page.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// Caption: one sentence.
    pub(crate) line: &'a str,
    /// What a column represents, such as `Hour, UTC`.
    pub(crate) unit: &'a str,
    /// Short labels below the chart, and full ones for the table.
    pub(crate) labels: &'a [(String, String)],
    /// Name and values of each series; at most [`SERIES`], one value per label.
    pub(crate) series: &'a [(String, Vec<i64>)],
    /// Formats a value.
    pub(crate) write: fn(i64) -> String,
}

impl Columns<'_> {
    pub(crate) fn show(&self) -> Markup {
        let sums = (0..self.labels.len()).map(|at| self.series.iter().map(|(_, values)| values[at]).sum::<i64>());
        let top = scale(sums.max().unwrap_or_default());
        let title = format!("{}-t", self.id);
        html! {
            figure class="chart" {
                figcaption { b id=(title) { (self.title) } span { (self.line) } }
                div class="plot" {
                    div class="y" aria-hidden="true" { @for step in (0..=4).rev() { span { ((self.write)(top / 4 * step)) } } }
                    svg role="img" aria-labelledby=(title) focusable="false" {
                        defs { @for n in 1..self.series.len() { (hatching(self.id, n)) } }
                        @for step in 0..=4 { line class=(if step == 4 { "g base" } else { "g" }) x1="0" x2="100%" y1=(36 * step) y2=(36 * step) {} }
                        @for at in 0..self.labels.len() { (self.column(at, top)) }
                        (self.axis())
                    }
                }
                @if self.series.len() > 1 {
                    p class="key" { @for (n, (name, _)) in self.series.iter().enumerate() { span { (swatch(self.id, n)) (name) } } }
                }
                details {
                    summary { "Show as a table" }
                    div class="wrap" tabindex="0" role="region" aria-label=(self.title) {
                        table {
                            thead { tr { th scope="col" { (self.unit) } @for (name, _) in self.series { th scope="col" class="num" { (name) } } } }
                            tbody {
                                @for (at, (_, long)) in self.labels.iter().enumerate().rev() {
                                    tr { th scope="row" { (long) } @for (_, values) in self.series { td class="num" { ((self.write)(values[at])) } } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn column(&self, at: usize, top: i64) -> Markup {
        let wide = 100.0 / self.labels.len() as f64;
        let x = format!("{:.2}%", wide * (at as f64 + 0.14));
        let width = format!("{:.2}%", wide * 0.72);
        let mut y = HEIGHT;
        let bars: Vec<_> = self.series.iter().enumerate().filter(|(_, (_, values))| values[at] > 0).map(|(n, (_, values))| {
            // Makes small values visible.
            let height = (values[at] as f64 / top as f64 * HEIGHT).max(1.5);
            y -= height;
            html! { rect x=(x) y=(format!("{y:.1}")) width=(width) height=(format!("{height:.1}")) class=[(n == 0).then_some("f1")] fill=[(n > 0).then(|| format!("url(#{}-{n})", self.id))] {} }
        }).collect();
        html! { @for bar in &bars { (bar) } }
    }

    fn axis(&self) -> Markup {
        let (count, wide) = (self.labels.len(), 100.0 / self.labels.len() as f64);
        let every = count.div_ceil(LABELS).max(1);
        let shown = (0..count).filter(|at| at % every == every / 2).enumerate();
        html! {
            @for (n, at) in shown {
                text x=(format!("{:.2}%", wide * (at as f64 + 0.5))) y="161" text-anchor="middle" class=[(n % 2 == 1).then_some("x2")] { (self.labels[at].0) }
            }
        }
    }
}

/// Returns the smallest round number that is at least `most` and divisible by four.
fn scale(most: i64) -> i64 {
    let mut unit = 1_i64;
    loop {
        for step in [4, 8, 12, 20, 40] {
            if unit * step >= most {
                return unit * step;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// Defines the fill pattern of the second or third series.
fn hatching(id: &str, n: usize) -> Markup {
    let (class, turned) = if n == 1 { ("f2", "rotate(45)") } else { ("f3", "rotate(-45)") };
    html! {
        pattern id={ (id) "-" (n) } width="5" height="5" patternUnits="userSpaceOnUse" patternTransform=(turned) {
            rect width="5" height="5" class=(class) {}
            path d="M0 0v5" class="hatch" {}
        }
    }
}

fn swatch(id: &str, n: usize) -> Markup {
    html! {
        svg aria-hidden="true" {
            rect width="100%" height="100%" rx="2" class=[(n == 0).then_some("f1")] fill=[(n > 0).then(|| format!("url(#{id}-{n})"))] {}
        }
    }
}

pub(crate) struct Bar {
    pub(crate) name: String,
    /// Ends of the plain and of the hatched part of the bar, from 0 to 1.
    pub(crate) ends: (f64, f64),
    /// One figure per column.
    pub(crate) figures: Vec<String>,
}

/// Renders a table with a bar in each row. `columns`: names, and whether narrow screens hide them.
pub(crate) fn bars(id: &str, title: &str, line: &str, columns: &[(&str, bool)], rows: &[Bar]) -> Markup {
    let per_cent = |share: f64| format!("{:.1}%", share.clamp(0.0, 1.0) * 100.0);
    html! {
        figure class="chart" {
            figcaption { b { (title) } span { (line) } }
            table class="bars" {
                caption class="sr" { (title) }
                thead {
                    tr {
                        th scope="col" { "Channel, country" }
                        th scope="col" { span class="sr" { "Bar" } }
                        @for (name, rare) in columns { th scope="col" class=(if *rare { "num w" } else { "num" }) { (name) } }
                    }
                }
                tbody {
                    @for (at, row) in rows.iter().enumerate() {
                        tr {
                            th scope="row" { (row.name) }
                            td {
                                svg aria-hidden="true" {
                                    @if at == 0 { defs { (hatching(id, 1)) } }
                                    rect class="track" width="100%" height="12" rx="2" {}
                                    @if row.ends.1 > row.ends.0 { rect x=(per_cent(row.ends.0)) width=(per_cent(row.ends.1 - row.ends.0)) height="12" rx="2" fill={ "url(#" (id) "-1)" } {} }
                                    rect class="f1" width=(per_cent(row.ends.0)) height="12" rx="2" {}
                                }
                            }
                            @for (figure, (_, rare)) in row.figures.iter().zip(columns) { td class=(if *rare { "num w" } else { "num" }) { (figure) } }
                        }
                    }
                }
            }
        }
    }
}

/// Formats a percentage.
pub(crate) fn share(part: i64, total: i64) -> String {
    format!("{:.1} %", part as f64 / total.max(1) as f64 * 100.0)
}

#[cfg(test)]
mod tests {
    use super::scale;

    #[test]
    fn scales_are_round_and_hold_everything() {
        assert_eq!([0, 1, 4, 5, 9, 13, 21, 41, 81, 12_345].map(scale), [4, 4, 4, 8, 12, 20, 40, 80, 120, 20_000]);
    }
}
