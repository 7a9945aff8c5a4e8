// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/services/service_channel.h"

#include "base/buffers.h"
#include "user/control_connection.h"
#include "user/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::user {

Result<std::unique_ptr<ServiceChannel>> ServiceChannel::connect(Process& process) {
  std::string reason;
  auto channel = process.host().connect_for_requests(reason);
  if (!channel) return failed(channel.error(), std::move(reason));
  return std::unique_ptr<ServiceChannel>(new ServiceChannel(process, *std::move(channel)));
}

ServiceChannel::~ServiceChannel() {
  IB_ASSERT(files_ == 0);
}

bool ServiceChannel::process(std::size_t most) {
  for (; most > 0; --most) {
    const std::optional<platform::RequestAnswer> answer = channel_->take();
    if (!answer) break;
    finish(*answer);
  }
  if (channel_->end().empty()) return true;
  end_all();
  return false;
}

Status ServiceChannel::send(std::uint32_t code, std::uint32_t file, std::span<const std::byte> in,
                            Request request) {
  if (requests_.size() >= kMostUnderWay) {
    return failed(Status::InsufficientResources,
                  fmt::format("{} requests of this channel are under way", kMostUnderWay));
  }
  const std::uint64_t tag = ++last_tag_;
  const Status sent = channel_->send(code, file, tag, in);
  if (sent != Status::Ok) {
    const std::string& end = channel_->end();
    return failed(sent, end.empty() ? status_text(sent) : end);
  }
  requests_.emplace(tag, std::move(request));
  return Status::Ok;
}

// Withdraws all that the file has in softibd.
void ServiceChannel::close(std::uint32_t file) {
  const control::CloseIn in{file, 0};
  (void)send(static_cast<std::uint32_t>(control::Code::Close), 0, bytes_of(in), {});
}

void ServiceChannel::forget(const ServiceFile& owner) {
  for (auto& [tag, request] : requests_) {
    if (request.owner != &owner) continue;
    request.owner = nullptr;
    request.done = {};
  }
}

void ServiceChannel::finish(const platform::RequestAnswer& answer) {
  const auto found = requests_.find(answer.tag);
  if (found == requests_.end()) return;
  const Request request = std::move(found->second);
  requests_.erase(found);
  ServiceEnd end;
  end.status = answer.status;
  std::span<const std::byte> out = answer.body;
  if (answer.status == Status::Ok) {
    end.handle = static_cast<std::uint32_t>(answer.information);
    if (request.opens && request.owner == nullptr) return close(end.handle);
  } else {
    out = out.first(std::min<std::uint64_t>(answer.information, out.size()));
    const auto text = answer.body.subspan(out.size());
    end.reason = {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  if (request.done) request.done(end, out);
}

// A callback may destroy files, whose requests are then nobody's.
void ServiceChannel::end_all() {
  const ServiceEnd end{Status::Disconnected, 0, channel_->end()};
  while (!requests_.empty()) {
    const auto first = requests_.begin();
    const Request request = std::move(first->second);
    requests_.erase(first);
    if (request.done) request.done(end, {});
  }
}

}  // namespace ib::user
