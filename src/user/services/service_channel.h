// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServiceChannel: a connection of this process to softibd for the services that drivers have too:
// Sa (sa.h) and Cm (cm.h). It is made for one event loop: requests are sent without waiting, and
// process() calls back with what has come. It has no thread.
//
//   auto channel = ServiceChannel::connect(process), and once it is there:
//   Sa sa(*channel), Cm cm(*channel)
//   sa.open(hca, [&](const ServiceEnd& end) { end.status, end.reason }), cm.open(...)
//   channel->descriptor() into the event loop (EPOLLIN), and whenever it is readable:
//   channel->process(), which all callbacks come from
//
// A call returns Ok, and its callback comes once, from process() and never from inside the call; or
// another status, and it never comes (last_reason() says why). Once softibd is gone all callbacks
// come with Disconnected. Dropping the channel, or a Sa or Cm, drops its callbacks.
//
// A callback may call anything of the channel and its files and destroy files, but not the channel.
// Thread rule: one thread at a time, the same for the channel and all its files.
#pragma once

#include "base/result.h"
#include "platform/request_channel.h"
#include "user/api.h"
#include "verbs/services/open_service.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ib::user {

// How a request has ended.
struct ServiceEnd {
  Status status = Status::Ok;
  std::uint32_t handle = 0;  // of what the request has made, if that is all that it brings
  std::string_view reason;   // in words, unless Ok
};
using ServiceDone = std::function<void(const ServiceEnd&)>;
// `out` is zeros unless the status is Ok, or the request says otherwise.
template <class Out>
using ServiceAnswer = std::function<void(const ServiceEnd&, const Out& out)>;

class ServiceFile;

class ServiceChannel {
 public:
  // Requests under way on all files of a channel, those that wait for events included.
  static constexpr std::size_t kMostUnderWay = control::kMostServiceRequests;

  // `process` outlives it.
  static Result<std::unique_ptr<ServiceChannel>> connect(Process& process);
  ServiceChannel(const ServiceChannel&) = delete;
  ServiceChannel& operator=(const ServiceChannel&) = delete;
  ~ServiceChannel();  // no file is left

  // Readable when process() has something to do. For poll() and epoll; level triggered.
  int descriptor() const { return channel_->descriptor(); }
  // Takes what has come, at most so many answers, and calls back; never waits. Returns false once
  // softibd is gone and every callback has come; the descriptor stays readable then.
  bool process(std::size_t most = 256);
  std::size_t under_way() const { return requests_.size(); }

 private:
  friend class ServiceFile;
  using OnOutput = std::function<void(const ServiceEnd&, std::span<const std::byte> out)>;
  struct Request {
    const ServiceFile* owner = nullptr;  // nullptr: nobody wants the answer any more
    bool opens = false;                  // it makes a file
    OnOutput done{};
  };

  ServiceChannel(Process& process, std::unique_ptr<platform::RequestChannel> channel)
      : process_(process), channel_(std::move(channel)) {}
  Status send(std::uint32_t code, std::uint32_t file, std::span<const std::byte> in,
              Request request);
  void close(std::uint32_t file);
  void forget(const ServiceFile& owner);
  void finish(const platform::RequestAnswer& answer);
  void end_all();

  Process& process_;
  std::unique_ptr<platform::RequestChannel> channel_;
  std::uint64_t last_tag_ = 0;
  std::size_t files_ = 0;
  std::unordered_map<std::uint64_t, Request> requests_;  // by tag
};

}  // namespace ib::user
