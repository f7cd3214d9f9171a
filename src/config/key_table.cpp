#include "config/key_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace motley::config {

void KeyTable::add_section(std::string_view path, bool repeated, std::string_view meaning) {
  const auto same = [path](const KeySection& section) { return section.path == path; };
  if (std::any_of(sections_.begin(), sections_.end(), same)) return;
  sections_.push_back({std::string(path), repeated, std::string(meaning), {}});
}

void KeyTable::add(std::string_view path, KeyRow row) {
  const auto section = std::find_if(sections_.begin(), sections_.end(), [path](const KeySection& s) { return s.path == path; });
  check(section != sections_.end(), "a key's section is added before the key");
  const auto known = std::find_if(section->rows.begin(), section->rows.end(), [&](const KeyRow& r) { return r.key == row.key; });
  if (known == section->rows.end())
    section->rows.push_back(std::move(row));
  else if (known->meaning.find(row.meaning) == std::string::npos)
    known->meaning += "; " + row.meaning;
}

}  // namespace motley::config
