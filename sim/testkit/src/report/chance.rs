//! Draws the curve: how likely the violation was over time.

use super::scene::{Owner, RowContent, Scene, Shape};

/// Draws the curve, if the scene has one. Its row reaches from no run at the bottom to all runs at the top.
pub(super) fn draw(scene: &mut Scene) {
    let Some(slice) = scene.slice.clone() else {
        return;
    };
    let Some(row) = scene.row(Owner::Chance, RowContent::Chance) else {
        return;
    };
    let (bottom, height) = (row.top + row.height, row.height);
    let y = |share: f64| bottom - share * height;
    let until = slice.until.min(scene.end);
    for share in [0.0, 1.0] {
        let points = vec![(0, y(share)), (scene.end, y(share))];
        scene.push(Shape::Steps { points }, "zero", String::new());
    }
    let mut points: Vec<(u64, f64)> = slice
        .curve
        .iter()
        .map(|chance| (chance.at, y(chance.share)))
        .collect();
    points.extend(slice.curve.last().map(|last| (until, y(last.share))));
    scene.push(Shape::Steps { points }, "chance", String::new());
    for chance in slice.curve {
        let mark = Shape::Mark {
            at: chance.at,
            y: y(chance.share) - 1.0,
            glyph: "●",
        };
        scene.push(mark, "chance", chance.text);
    }
}
