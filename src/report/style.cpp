// Palette and style sheet. Dark rules repeat only what differs from the light ones.
#include "report/style.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/check.h"

namespace motley::report {
namespace {

struct Ink {
  std::string_view light;  // on a light ground
  std::string_view dark;   // on a dark ground
};

// The ink itself comes first: the first strategy is mostly the baseline, and stands back.
constexpr std::array strategy_inks{
    Ink{"#4b5563", "#c3cad3"}, Ink{"#0072b2", "#3f9fe0"}, Ink{"#d55e00", "#f27d42"}, Ink{"#009e73", "#22b98f"},
    Ink{"#c0649a", "#e08fbf"}, Ink{"#db9200", "#f2b732"}, Ink{"#45a8e2", "#97d6f8"},
};
constexpr std::size_t dash_styles = 3;  // solid, dashed, dotted

constexpr std::string_view shapes = R"(
.chart text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;font-size:12px;fill:#5b6570;font-variant-numeric:tabular-nums}
.chart .end{text-anchor:end}
.chart .middle{text-anchor:middle}
.chart .small{font-size:11px}
.chart .ink{fill:#1c2126}
.chart .strong{fill:#1c2126;font-weight:600}
.chart .heading{fill:#1c2126;font-weight:600;font-size:15px}
.chart .note{font-size:13px;font-style:italic}
.chart .ground{fill:#ffffff;stroke:#d9dde2}
.chart .grid{stroke:#e6e9ec;stroke-width:1}
.chart .axis{stroke:#9aa3ad;stroke-width:1}
.chart .target{stroke:#1c2126;stroke-width:1.25;stroke-dasharray:2 3}
.chart .mean{fill:none;stroke:currentColor;stroke-width:2.1;stroke-linejoin:round;stroke-linecap:round}
.chart .best .mean{stroke-width:3.6}
.chart .seed{fill:none;stroke:currentColor;stroke-width:1;stroke-opacity:.25}
.chart .dash1 .mean,.swatch .dash1{stroke-dasharray:7 4}
.chart .dash2 .mean,.swatch .dash2{stroke-dasharray:1 4}
.chart .dot{fill:currentColor;stroke:#ffffff;stroke-width:1.5}
.chart .bar{fill:currentColor;fill-opacity:.82}
.chart .dash1 .bar{fill-opacity:.5}
.chart .dash2 .bar{fill-opacity:.3}
.chart .best .bar{fill-opacity:1}
.chart .halo{stroke:#ffffff;stroke-width:4.5;stroke-linecap:round}
.chart .whisker{stroke:#1c2126;stroke-width:1.4}
.chart .one-seed{fill:#ffffff;stroke:#1c2126;stroke-width:1.1}
.chart .lane{fill:#f3f5f7}
.chart .compute{fill:#2f6f9f}
.chart .send{fill:#e69f00}
.chart .receive{fill:#3fbf9b}
.chart .wait{fill:#e3d3d6}
.chart .wait-edge{stroke:#b08089;stroke-width:1}
.chart .in-step{fill:#8fcdb9}
.chart .lagging,.chart .straggles{fill:#e69f00}
.chart .over-stale{fill:#c4421a}
.chart .cancelled{fill:none;stroke:#1c2126;stroke-width:1.6;stroke-linecap:round}
.chart .discarded{fill:#ffffff;stroke:#1c2126;stroke-width:1.4}
.chart .fades{transition:opacity .12s}
.chart .faded{opacity:.12}
.swatch line{stroke:currentColor;stroke-width:3;stroke-linecap:round}
)";

constexpr std::string_view dark_shapes = R"(
.chart text{fill:#a3adb8}
.chart .ink,.chart .strong,.chart .heading{fill:#e8ebee}
.chart .ground{fill:#14181d;stroke:#2c333b}
.chart .grid{stroke:#262c33}
.chart .axis{stroke:#66707b}
.chart .target{stroke:#e8ebee}
.chart .dot{stroke:#14181d}
.chart .halo{stroke:#14181d}
.chart .whisker{stroke:#e8ebee}
.chart .one-seed{fill:#14181d;stroke:#e8ebee}
.chart .lane{fill:#1c2229}
.chart .compute{fill:#3b7cae}
.chart .wait{fill:#43343a}
.chart .wait-edge{stroke:#8d6670}
.chart .in-step{fill:#2f7d68}
.chart .over-stale{fill:#e2603a}
.chart .cancelled{stroke:#e8ebee}
.chart .discarded{fill:#14181d;stroke:#e8ebee}
)";

}  // namespace

std::string strategy_class(std::size_t row) {
  return fmt::format("s{} dash{}", row % strategy_inks.size(), row / strategy_inks.size() % dash_styles);
}

std::string swatch(std::size_t row) {
  return fmt::format(
      R"(<svg class="swatch" viewBox="0 0 26 10" width="26" height="10" aria-hidden="true"><line class="{}" x1="2" y1="5" x2="24" y2="5"/></svg>)",
      strategy_class(row));
}

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::compute: return "compute";
    case Phase::send: return "send";
    case Phase::wait: return "wait";
    case Phase::receive: return "receive";
  }
  check(false, "a phase is one of four");
  return {};
}

std::string_view phase_class(Phase phase) { return phase_name(phase); }

std::string chart_style() {
  std::string light;
  std::string dark;
  for (std::size_t i = 0; i < strategy_inks.size(); ++i) {
    light += fmt::format(".s{}{{color:{}}}\n", i, strategy_inks[i].light);
    dark += fmt::format(".s{}{{color:{}}}\n", i, strategy_inks[i].dark);
  }
  // Paper is light whatever the screen is.
  return fmt::format("{}{}@media screen and (prefers-color-scheme:dark){{{}{}}}\n", shapes, light, dark_shapes, dark);
}

}  // namespace motley::report
