#include "report/pipeline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "report/axes.h"
#include "report/canvas.h"
#include "report/lanes.h"
#include "report/number.h"
#include "report/scale.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr double chart_width = 530;
constexpr double too_thin = 0.05;  // pixels
constexpr std::array<const char*, 3> names{"forward", "gradient of inputs", "gradient of weights"};

std::size_t colour_of(std::uint8_t part) { return part + std::size_t{1}; }

void draw_names(Canvas& canvas, double y) {
  double x = 2;
  for (std::uint8_t part = 0; part < names.size(); ++part, x += 140) {
    canvas.coloured(colour_of(part), [&] { canvas.rect({x, y - 9, 14, 10}, "bar"); });
    canvas.text({x + 19, y}, names.at(part), "small");
  }
}

std::string summary(const Row& row) {
  const PipelineRow& pipeline = *row.pipeline;
  return fmt::format("busy {}, {} of its ideal, {} updates late at most, keeps {}", show_percent(pipeline.utilization),
                     show_percent(pipeline.ratio_to_ideal), show_fixed(pipeline.max_delay, 0), show_bytes(pipeline.peak_stash_bytes));
}

struct Painted {
  Drawing drawing;
  Canvas canvas;
};
Painted paint(const Row& row, std::size_t index);

}  // namespace

bool has_pipeline(const Row& row) { return row.pipeline && !row.pipeline->boxes.empty(); }

std::string pipeline_chart(const Row& row, std::size_t index) {
  const Painted painted = paint(row, index);
  return inline_svg(painted.drawing, painted.canvas);
}

std::string pipeline_svg(const Row& row, std::size_t index) {
  const Painted painted = paint(row, index);
  return standalone_svg(painted.drawing, painted.canvas);
}

namespace {

Painted paint(const Row& row, std::size_t index) {
  const PipelineRow& pipeline = *row.pipeline;
  const Lanes rows = lanes(pipeline.stages, 52, chart_width - 12);
  std::vector<double> times;
  for (const PipelineRow::Box& box : pipeline.boxes) {
    times.push_back(box.begin_s);
    times.push_back(box.end_s);
  }
  const Scale x{extent_of(times), rows.plot.x, rows.plot.right()};
  Canvas canvas;
  canvas.strategy(index, "", [&] {
    canvas.polyline({{2, 14}, {24, 14}}, "mean");
    canvas.text({32, 18}, shorten(printable(row.strategy), 34), "strong", row.strategy);
  });
  draw_names(canvas, 40);
  for (std::size_t s = 0; s < rows.shown; ++s) lane_name(canvas, rows.row(s), pipeline.stages[s]);
  for (const PipelineRow::Box& box : pipeline.boxes) {
    if (box.stage >= rows.shown || x(box.end_s) - x(box.begin_s) < too_thin) continue;
    const Box lane = rows.row(box.stage);
    canvas.coloured(colour_of(box.part), [&] {
      canvas.rect({x(box.begin_s), lane.y, x(box.end_s) - x(box.begin_s), lane.height}, "bar",
                  fmt::format("{}: {} for {}", pipeline.stages[box.stage], names.at(box.part), show_seconds(box.end_s - box.begin_s)));
    });
  }
  const std::string more = more_lanes(rows, pipeline.stages.size());
  axis_below(canvas, rows.plot, x, ticks(x.extent, 6), plain_label, more.empty() ? "time (s)" : more);
  const double foot = rows.plot.bottom() + 52;
  canvas.text({2, foot}, summary(row), "small");
  Drawing drawing{.id = fmt::format("pipeline-{}", index),
                  .title = fmt::format("{}: what each stage does", row.strategy),
                  .description = summary(row) + ".",
                  .width = chart_width,
                  .height = foot + 8};
  return {std::move(drawing), std::move(canvas)};
}

}  // namespace

}  // namespace motley::report
