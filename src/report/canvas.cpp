// The only place that writes SVG elements, and so the only one that escapes what goes into them.
#include "report/canvas.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "report/style.h"
#include "report/text.h"

namespace motley::report {
namespace {

std::string opening(const Drawing& drawing, std::string_view attributes) {
  return fmt::format(
      "<svg{} class=\"chart\" id=\"{id}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\"{}>\n"
      "<title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n",
      attributes, coordinate(drawing.width), coordinate(drawing.height), drawing.attributes, escape_xml(drawing.title),
      escape_xml(drawing.description), fmt::arg("id", drawing.id));
}

}  // namespace

std::string coordinate(double value) {
  check(std::isfinite(value), "a place on a drawing is finite");
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

void Canvas::finish(std::string_view element, std::string_view tip) {
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escape_xml(tip), element);
}

void Canvas::line(At from, At to, std::string_view css) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", css, coordinate(from.x), coordinate(from.y),
                       coordinate(to.x), coordinate(to.y));
}

void Canvas::rect(Box box, std::string_view css, std::string_view tip, double corner) {
  body_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", css, coordinate(box.x), coordinate(box.y),
                       coordinate(box.width), coordinate(box.height));
  if (corner > 0) body_ += fmt::format(" rx=\"{}\"", coordinate(corner));
  finish("rect", tip);
}

void Canvas::circle(At centre, double radius, std::string_view css, std::string_view tip) {
  body_ +=
      fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"", css, coordinate(centre.x), coordinate(centre.y), coordinate(radius));
  finish("circle", tip);
}

void Canvas::text(At at, std::string_view content, std::string_view css) { text(at, content, css, {}); }

void Canvas::text(At at, std::string_view content, std::string_view css, std::string_view tip) {
  const std::string title = tip.empty() ? "" : fmt::format("<title>{}</title>", escape_xml(tip));
  body_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}{}</text>\n", css, coordinate(at.x), coordinate(at.y), title,
                       escape_xml(content));
}

void Canvas::polyline(const std::vector<At>& points, std::string_view css, std::string_view tip) {
  if (points.size() < 2) return;
  body_ += fmt::format("<polyline class=\"{}\" points=\"", css);
  for (const At& point : points) body_ += coordinate(point.x) + "," + coordinate(point.y) + " ";
  body_.back() = '"';
  finish("polyline", tip);
}

void Canvas::begin_clip(Box box, std::string_view id) {
  body_ += fmt::format("<clipPath id=\"{}\">", id);
  rect(box, "");
  body_ += fmt::format("</clipPath>\n<g clip-path=\"url(#{})\">\n", id);
}

void Canvas::begin_strategy(std::size_t row, std::string_view css) {
  body_ += fmt::format("<g class=\"{}{}{}\" data-s=\"{}\">\n", strategy_class(row), css.empty() ? "" : " ", css, row);
}

void Canvas::begin_colour(std::size_t number) { body_ += fmt::format("<g class=\"{}\">\n", strategy_class(number)); }

void Canvas::end_group() { body_ += "</g>\n"; }

std::string inline_svg(const Drawing& drawing, const Canvas& canvas) { return opening(drawing, "") + canvas.body() + "</svg>\n"; }

std::string standalone_svg(const Drawing& drawing, const Canvas& canvas) {
  Canvas ground;
  ground.rect({0.5, 0.5, drawing.width - 1, drawing.height - 1}, "ground", {}, 8);
  const std::string size = fmt::format(" xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\"", coordinate(drawing.width),
                                       coordinate(drawing.height));
  return opening(drawing, size) + "<style>" + chart_style() + "</style>\n" + ground.body() + canvas.body() + "</svg>\n";
}

}  // namespace motley::report
