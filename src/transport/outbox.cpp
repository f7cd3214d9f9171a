#include "transport/outbox.h"

#include "base/check.h"

namespace motley::transport {

void Outbox::push(const BulkMessage& bulk_message) {
  by_arrival_.emplace_hint(by_arrival_.end(), arrivals_, bulk_message.priority);
  waiting_.emplace(std::pair(bulk_message.priority, arrivals_), bulk_message);
  ++arrivals_;
  payload_bytes_ += bulk_message.payload.size();
}

Outbox::Waiting::const_iterator Outbox::chosen() const {
  check(!empty(), "a message is taken only from an outbox that is not empty");
  if (oldest_overtaken_ < overtakes_) return waiting_.begin();
  const auto& [arrival, priority] = *by_arrival_.begin();
  return waiting_.find({priority, arrival});
}

BulkMessage Outbox::pop() {
  const auto taken = chosen();
  const SequenceNumber arrival = taken->first.second;
  oldest_overtaken_ = arrival == by_arrival_.begin()->first ? 0 : oldest_overtaken_ + 1;
  by_arrival_.erase(arrival);
  BulkMessage bulk_message = taken->second;
  waiting_.erase(taken);
  payload_bytes_ -= bulk_message.payload.size();
  return bulk_message;
}

void Outbox::clear() {
  waiting_.clear();
  by_arrival_.clear();
  oldest_overtaken_ = 0;
  payload_bytes_ = 0;
}

}  // namespace motley::transport
