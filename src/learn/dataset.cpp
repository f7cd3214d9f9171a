#include "learn/dataset.h"

#include <fmt/format.h>

#include "base/match.h"

namespace motley::learn {

namespace {

template <class Content>
const auto& part_of(const Content& content, Part part) {
  if constexpr (std::is_same_v<Content, Pictures>)
    return part == Part::training ? content.training() : content.evaluation();
  else
    return part == Part::training ? content.training : content.evaluation;
}

SampleShape shape_of(const InMemoryDataSet::Content& content) {
  return std::visit(match{[](const Pictures& p) {
                            const PictureFormat& f = p.format();
                            return SampleShape{.channels = f.channels, .height = f.height, .width = f.width, .classes = f.classes};
                          },
                          [](const Vectors& v) {
                            return SampleShape{.channels = static_cast<std::int64_t>(v.features),
                                               .height = 1,
                                               .width = 1,
                                               .classes = static_cast<std::int64_t>(v.classes)};
                          },
                          [](const Text& t) {
                            return SampleShape{.text = true,
                                               .context = static_cast<std::int64_t>(t.context),
                                               .classes = static_cast<std::int64_t>(t.vocabulary)};
                          }},
                    content);
}

}  // namespace

std::string describe(const SampleShape& shape) {
  if (shape.text) return fmt::format("text in samples of {} characters out of {}", shape.context, shape.classes);
  if (shape.height == 1 && shape.width == 1) return fmt::format("{} features of {} classes", shape.channels, shape.classes);
  return fmt::format("{}x{}x{} pictures of {} classes", shape.channels, shape.height, shape.width, shape.classes);
}

void DataSet::gather(Part, std::span<const std::uint32_t>, std::span<float>, std::span<std::int64_t>) const {
  check(false, "a text is gathered as codes");
}

void DataSet::gather(Part, std::span<const std::uint32_t>, std::span<std::int64_t>, std::span<std::int64_t>) const {
  check(false, "only a text is gathered as codes");
}

InMemoryDataSet::InMemoryDataSet(Content content) : content_(std::move(content)), shape_(shape_of(content_)) {}

std::uint64_t InMemoryDataSet::size(Part part) const {
  return std::visit(match{[&](const Pictures& p) -> std::uint64_t { return part_of(p, part).labels.size(); },
                          [&](const Vectors& v) -> std::uint64_t { return part_of(v, part).labels.size(); },
                          [&](const Text& t) -> std::uint64_t { return t.samples(part_of(t, part)); }},
                    content_);
}

std::vector<std::uint32_t> InMemoryDataSet::labels(Part part) const {
  const auto copied = [](const auto& labels) { return std::vector<std::uint32_t>(labels.begin(), labels.end()); };
  return std::visit(
      match{[&](const Pictures& p) { return copied(part_of(p, part).labels); },
            [&](const Vectors& v) { return copied(part_of(v, part).labels); }, [&](const Text&) { return std::vector<std::uint32_t>(); }},
      content_);
}

void InMemoryDataSet::gather(Part part, std::span<const std::uint32_t> samples, std::span<float> inputs,
                             std::span<std::int64_t> targets) const {
  std::visit(match{[&](const Pictures& p) { p.gather(part_of(p, part), samples, inputs, targets); },
                   [&](const Vectors& v) { v.gather(part_of(v, part), samples, inputs, targets); },
                   [&](const Text&) { check(false, "a text is gathered as codes"); }},
             content_);
}

void InMemoryDataSet::gather(Part part, std::span<const std::uint32_t> samples, std::span<std::int64_t> codes,
                             std::span<std::int64_t> targets) const {
  const Text* text = std::get_if<Text>(&content_);
  check(text != nullptr, "only a text is gathered as codes");
  text->gather(part_of(*text, part), samples, codes, targets);
}

}  // namespace motley::learn
