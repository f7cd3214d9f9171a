// A small checker of HTML and SVG for the tests of this module. It knows tags, not their meaning.
#pragma once
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace motley::report {

/// Reads the markup once, front to back; the first complaint stays.
class MarkupChecker {
 public:
  explicit MarkupChecker(std::string_view text) : text_(text) {
    while (complaint_.empty() && at_ < text_.size()) text_[at_] == '<' ? tag() : content();
    if (complaint_.empty() && !open_.empty()) complain("never closed: " + open_.back());
  }
  [[nodiscard]] const std::string& complaint() const { return complaint_; }

 private:
  void complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what + " near: " + std::string(text_.substr(at_ > 60 ? at_ - 60 : 0, 120));
  }

  void content() {
    if (text_[at_] == '>') complain("a bare >");
    if (text_[at_] == '&') {
      const std::size_t end = text_.find(';', at_);
      if (end == std::string_view::npos || end - at_ > 7) complain("a bare &");
    }
    ++at_;
  }

  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-')) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  void tag() {
    ++at_;
    if (text_.substr(at_).starts_with("!DOCTYPE html>")) {
      at_ += 14;
      return;
    }
    const bool closing = text_[at_] == '/';
    if (closing) ++at_;
    const std::string element = name();
    if (element.empty()) return complain("a bare <");
    const bool alone = attributes();
    if (closing)
      close(element);
    else if (!alone && !is_void(element))
      open(element);
  }

  /// Up to and with '>'; true for "/>".
  bool attributes() {
    std::set<std::string> seen;
    while (at_ < text_.size()) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
      if (text_.substr(at_).starts_with("/>")) return at_ += 2, true;
      if (text_.substr(at_).starts_with(">")) return ++at_, false;
      const std::string key = name();
      if (key.empty() || !text_.substr(at_).starts_with("=\"")) return complain("an attribute without a quoted value"), true;
      at_ += 2;
      const std::size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) return complain("a quote without end"), true;
      const std::string value(text_.substr(at_, end - at_));
      at_ = end + 1;
      if (value.find('<') != std::string::npos) complain("a < inside a value");
      if (!seen.insert(key).second) complain("an attribute twice");
      if (key == "id" && !ids_.insert(value).second) complain("an id twice: " + value);
    }
    return complain("a tag without end"), true;
  }

  void open(const std::string& element) {
    if (element != "style" && element != "script") return open_.push_back(element);
    const std::size_t end = text_.find("</" + element + ">", at_);
    if (end == std::string_view::npos) return complain(element + " without end");
    at_ = end + element.size() + 3;
  }

  void close(const std::string& element) {
    if (open_.empty() || open_.back() != element) return complain("closed without being the last opened: " + element);
    open_.pop_back();
  }

  static bool is_void(const std::string& element) { return element == "meta" || element == "br" || element == "link" || element == "img"; }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> open_;
  std::set<std::string> ids_;
  std::string complaint_;
};

/// Empty when every tag is closed in order, attributes are quoted, ids are unique and nothing is left unescaped.
inline std::string complaint_about(const std::string& markup) { return MarkupChecker(markup).complaint(); }

inline std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace motley::report
