#include "runtime/value_checker.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/finite.h"
#include "codec/codec.h"
#include "runtime/constants.h"

namespace motley::runtime {

ValueChecker::ValueChecker(StoreThread& store_thread, OnChecked on_checked)
    : store_thread_(store_thread), on_checked_(std::move(on_checked)) {}

void ValueChecker::add(Slice slice) {
  waiting_.push_back(std::move(slice));
  if (!checking_) check_waiting();
}

void ValueChecker::check_waiting() {
  if (waiting_.empty()) return;
  checking_ = true;
  const auto batch = std::make_shared<const Batch>(std::exchange(waiting_, {}));
  store_thread_.run([batch, &pool = store_thread_.pool()](store::ShardStore&) { return check_values(*batch, *pool); },
                    [this, batch](const std::vector<bool>& finite) {
                      checking_ = false;
                      for (std::size_t i = 0; i < batch->size(); ++i) on_checked_((*batch)[i], finite[i]);
                      if (!checking_) check_waiting();
                    });
}

std::vector<bool> ValueChecker::check_values(const Batch& batch, store::ThreadPool& pool) {
  std::vector<std::pair<std::size_t, std::size_t>> pieces;  // slice, and first byte of it
  for (std::size_t i = 0; i < batch.size(); ++i)
    for (std::size_t at = 0; at < batch[i].payload.size(); at += bytes_per_check) pieces.emplace_back(i, at);
  std::vector<std::uint8_t> finite(pieces.size());  // not bool: threads write neighbours
  pool.parallel_for(pieces.size(), [&](std::size_t p) {
    const Slice& slice = batch[pieces[p].first];
    const auto rest = slice.payload.subspan(pieces[p].second);
    const auto piece = rest.first(std::min(rest.size(), bytes_per_check));
    finite[p] = codec::make(slice.bits).value()->all_below(value_limit, piece, piece.size() * 8 / slice.bits) ? 1 : 0;
  });
  std::vector<bool> all(batch.size(), true);
  for (std::size_t p = 0; p < pieces.size(); ++p)
    if (finite[p] == 0) all[pieces[p].first] = false;
  return all;
}

}  // namespace motley::runtime
