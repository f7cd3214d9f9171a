// Writes SVG: a list of shapes with classes, never colours (those are style.h's). Text and tips are escaped here and nowhere else.
// Places must be finite; a chart leaves out what has none.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace motley::report {

struct At {
  double x{};
  double y{};
};

struct Box {
  double x{};
  double y{};
  double width{};
  double height{};
  [[nodiscard]] double right() const { return x + width; }
  [[nodiscard]] double bottom() const { return y + height; }
};

class Canvas {
 public:
  void line(At from, At to, std::string_view css);
  /// `tip` shows when the pointer rests on the shape; none when empty.
  void rect(Box box, std::string_view css, std::string_view tip = {}, double corner = 0);
  void circle(At centre, double radius, std::string_view css, std::string_view tip = {});
  void text(At at, std::string_view content, std::string_view css);
  /// As text(), with a tip; for a name that was shortened.
  void text(At at, std::string_view content, std::string_view css, std::string_view tip);
  /// Joins the points by straight lines. Fewer than two points draw nothing.
  void polyline(const std::vector<At>& points, std::string_view css, std::string_view tip = {});
  /// Places inside `box` only, for what `draw` draws. `id` is unique on the page.
  template <class Draw>
  void clipped(Box box, std::string_view id, Draw draw) {
    begin_clip(box, id);
    draw();
    end_group();
  }
  /// All that `draw` draws belongs to strategy number `row`: it takes its colour, and fades when another strategy is looked at.
  template <class Draw>
  void strategy(std::size_t row, std::string_view css, Draw draw) {
    begin_strategy(row, css);
    draw();
    end_group();
  }
  /// In the colour of line number `number`, without belonging to a strategy.
  template <class Draw>
  void coloured(std::size_t number, Draw draw) {
    begin_colour(number);
    draw();
    end_group();
  }
  /// SVG written elsewhere, taken as it is.
  void raw(std::string_view svg) { body_ += svg; }

  [[nodiscard]] const std::string& body() const { return body_; }

 private:
  void begin_clip(Box box, std::string_view id);
  void begin_strategy(std::size_t row, std::string_view css);
  void begin_colour(std::size_t number);
  void end_group();
  void finish(std::string_view element, std::string_view tip);
  std::string body_;
};

/// A whole drawing. `id` is unique on the page and made of letters, digits and '-'.
struct Drawing {
  std::string id{};
  std::string title{};        // name of the drawing, for screen readers
  std::string description{};  // content of the drawing, for screen readers
  double width{};
  double height{};
  std::string attributes{};  // further ones of the svg element, as they are
};

/// An svg element for use inside a page that carries chart_style().
std::string inline_svg(const Drawing& drawing, const Canvas& canvas);

/// An SVG file of its own: brings its style and an opaque ground, so that it reads on any page, light or dark.
std::string standalone_svg(const Drawing& drawing, const Canvas& canvas);

/// A place or length as SVG has it: at most two decimals.
std::string coordinate(double value);

}  // namespace motley::report
