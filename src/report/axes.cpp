// Grid, labels and captions, at fixed distances in pixels from the plot.
#include "report/axes.h"

#include <algorithm>

#include "report/number.h"

namespace motley::report {

void axis_below(Canvas& canvas, Box plot, const Scale& x, const Ticks& ticks, const Label& label, std::string_view caption) {
  for (const double value : ticks.at) {
    canvas.line({x(value), plot.y}, {x(value), plot.bottom()}, "grid");
    canvas.text({x(value), plot.bottom() + 17}, label(ticks, value), "middle");
  }
  canvas.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, "axis");
  if (!caption.empty()) canvas.text({plot.right(), plot.bottom() + 36}, caption, "end");
}

void axis_left(Canvas& canvas, Box plot, const Scale& y, const Ticks& ticks, const Label& label, std::string_view caption) {
  for (const double value : ticks.at) {
    canvas.line({plot.x, y(value)}, {plot.right(), y(value)}, "grid");
    canvas.text({plot.x - 8, y(value) + 4}, label(ticks, value), "end");
  }
  canvas.text({plot.x, plot.y - 10}, caption, "");
}

void nothing_to_show(Canvas& canvas, Box plot, std::string_view why) {
  canvas.rect(plot, "lane", {}, 4);
  canvas.text({plot.x + plot.width / 2, plot.y + plot.height / 2 + 4}, why, "note middle");
}

std::string plain_label(const Ticks& ticks, double value) { return ticks.label(value); }

std::string percent_label(const Ticks& ticks, double share) { return show_percent(share, std::max(0, ticks.decimals - 2)); }

}  // namespace motley::report
