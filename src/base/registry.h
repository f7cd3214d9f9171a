// Registry: factories by the names that job files use. Built-in entries come first; a program may add its own.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace motley {

/// Add entries before the first job is read; afterwards any thread may look them up. A factory keeps its address until the next add().
template <class Factory>
class Registry {
 public:
  struct Entry {
    std::string name;
    Factory make;
  };
  explicit Registry(std::vector<Entry> built_in) : entries_(std::move(built_in)) {}

  /// `name` must be new and not "none", which job files use for absence.
  void add(std::string name, Factory make) {
    check(!name.empty() && name != "none" && find(name) == nullptr, "a registered name is new");
    entries_.push_back({std::move(name), std::move(make)});
  }
  /// Null when there is no such name.
  [[nodiscard]] const Factory* find(std::string_view name) const {
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
    return entry == entries_.end() ? nullptr : &entry->make;
  }
  /// In the order of registration.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Entry& entry : entries_) all.push_back(entry.name);
    return all;
  }
  /// "a, b or c", for error messages.
  [[nodiscard]] std::string list() const {
    std::string text;
    for (std::size_t i = 0; i < entries_.size(); ++i) text += (i == 0 ? "" : i + 1 == entries_.size() ? " or " : ", ") + entries_[i].name;
    return text;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace motley
