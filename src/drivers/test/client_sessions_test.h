// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the random test of this folder: connections to softibd that open, ask, cancel, close and end
// in the order of softibd/daemon_session.cpp, and judge each answer by their books. As there, a
// request is freed inside its completion: whoever touches it afterwards is found by asan.
#pragma once

#include "drivers/test/client_model_test.h"

#include <functional>
#include <list>
#include <memory>
#include <string>

namespace ib::drivers::test {

class Sessions {
 public:
  struct Flight;
  struct Client;
  struct File {
    File(io::DeviceObject& device, std::uint32_t number, Client& client, io::FileObject* process)
        : object(device, number, client.who, process) {}
    io::FileObject object;
    Book book;
    const fabric::Hca* hca = nullptr;
    std::size_t pending = 0;
    bool pulled = false;  // its HCA was, or is being, pulled out
    bool closing = false;
    bool close_sent = false;
  };
  enum class State : std::uint8_t { Opening, Open, Ending, ClosingFiles, ClosingZero, Over };
  struct Client {
    Sessions* owner = nullptr;
    io::Client who;
    State state = State::Opening;
    bool attached = false;
    control::AttachOut attach;
    std::unique_ptr<File> zero;
    std::map<std::uint32_t, std::unique_ptr<File>> files;
    std::uint32_t last_number = 0;
    std::list<Flight> flights;
    bool in_end_step = false;

    bool is_open() const { return state == State::Open; }
  };
  using Then = std::function<void(const io::Irp& irp)>;
  struct Flight {
    io::Irp irp;
    Client* client = nullptr;
    File* file = nullptr;
    Shape shape{Code::Ping};
    std::vector<std::byte> in;
    std::array<std::byte, 4096> out;
    std::uint64_t began = 0;
    std::unique_ptr<File> opening;
    Then then;
    std::list<Flight>::iterator self;
  };

  explicit Sessions(Bench& bench) : bench_(bench) {}
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  std::vector<std::unique_ptr<Client>> clients;
  std::size_t started = 0;
  std::size_t ended = 0;

  Client& connect() {
    Client& client = *clients.emplace_back(std::make_unique<Client>());
    client.owner = this;
    client.who.session = ++last_session_;
    client.who.pid = static_cast<std::uint32_t>(100 + last_session_);
    bench_.host.alive.insert(client.who.pid);
    client.zero = std::make_unique<File>(bench_.root->device(), 0, client, nullptr);
    dispatch(new_flight(client, {Code::Ping}, io::Major::Create), *client.zero);
    return client;
  }

  void send(Client& client, File& file, const Shape& shape, std::vector<std::byte> in,
            Then then = {}) {
    Flight& flight = new_flight(client, shape, io::Major::DeviceControl);
    flight.in = std::move(in);
    flight.irp.in = flight.in;
    flight.then = std::move(then);
    for (platform::NativeHandle& handle : flight.irp.in_handles) handle = FakeHost::handle();
    if (Held* named = named_by(flight, file)) {
      ++named->under_way;
      if (shape.destroys) {
        ++named->ends;
        named->disturbed = flight.began;
      }
    }
    dispatch(flight, file);
  }

  void open(Client& client, io::DeviceObject& device, const fabric::Hca& hca, bool pulled) {
    Flight& flight = new_flight(client, {Code::Open}, io::Major::Create);
    auto* zero = &client.zero->object;
    flight.opening = std::make_unique<File>(device, ++client.last_number, client, zero);
    flight.opening->hca = &hca;
    flight.opening->pulled = pulled;
    dispatch(flight, *flight.opening);
  }

  void close(Client& client, File& file) {
    file.closing = true;
    ++file.pending;  // it must not go while we are here
    cancel_requests(client, &file);
    --file.pending;
    became_free(client, file);
  }

  // The socket closes.
  void end(Client& client) {
    client.state = State::Ending;
    bench_.root->disconnect(client.zero->object);
    client.in_end_step = true;
    cancel_requests(client, nullptr);
    client.in_end_step = false;
    go_on_ending(client);
  }

  // Not in the middle of anything: those that are over are let go of.
  void reap() {
    std::erase_if(clients, [](const auto& client) { return client->state == State::Over; });
  }

  // Files of an HCA, also those that are being opened.
  template <class What>
  void for_files_of(const fabric::Hca& hca, What&& what) {
    for (const auto& client : clients) {
      for (const auto& [number, file] : client->files) {
        if (file->hca == &hca) what(*client, *file);
      }
      for (const Flight& flight : client->flights) {
        if (flight.opening != nullptr && flight.opening->hca == &hca)
          what(*client, *flight.opening);
      }
    }
  }

 private:
  Flight& new_flight(Client& client, const Shape& shape, io::Major major) {
    Flight& flight = client.flights.emplace_back();
    flight.self = std::prev(client.flights.end());
    flight.client = &client;
    flight.shape = shape;
    flight.began = ++tick_;
    flight.irp.major = major;
    flight.irp.requestor_mode = io::RequestorMode::User;
    flight.irp.code = number_of(shape.code);
    flight.irp.out = flight.out;
    return flight;
  }

  void dispatch(Flight& flight, File& file) {
    ++started;
    flight.file = &file;
    ++file.pending;
    flight.irp.file = &file.object;
    io::call_driver(file.object.device(), flight.irp.start(&on_done, &flight));
  }

  static void on_done(io::Irp&, void* context) {
    auto& flight = *static_cast<Flight*>(context);
    flight.client->owner->finish(flight);
  }

  void finish(Flight& flight) {
    ++ended;
    Client& client = *flight.client;
    const bool ok = flight.irp.status == Status::Ok;
    check_form(flight);
    if (flight.irp.major == io::Major::DeviceControl) take_note(flight);
    if (flight.opening != nullptr) {
      flight.file = nullptr;
      --flight.opening->pending;
      const std::uint32_t number = flight.opening->object.number();
      if (ok) client.files.emplace(number, std::move(flight.opening));
    }
    if (flight.irp.major == io::Major::Close) {
      EXPECT_TRUE(ok) << flight.irp.reason;
      File* file = std::exchange(flight.file, nullptr);
      if (file == client.zero.get()) {
        client.zero.reset();
      } else {
        client.files.erase(file->object.number());
      }
    }
    if (client.state == State::Opening && flight.irp.major == io::Major::Create) {
      EXPECT_TRUE(ok) << flight.irp.reason;
      client.state = State::Open;
    }
    if (flight.then) flight.then(flight.irp);
    forget(flight);
    go_on_ending(client);
  }

  void forget(Flight& flight) {
    Client& client = *flight.client;
    File* file = flight.file;
    client.flights.erase(flight.self);
    if (file == nullptr) return;
    --file->pending;
    became_free(client, *file);
  }

  void became_free(Client& client, File& file) {
    if (file.pending == 0 && file.closing && !file.close_sent) send_close(client, file);
  }
  void send_close(Client& client, File& file) {
    file.closing = file.close_sent = true;
    dispatch(new_flight(client, {Code::Close}, io::Major::Close), file);
  }

  // One that is completed by it may complete others.
  void cancel_requests(Client& client, const File* of) {
    for (;;) {
      const auto next =
          std::find_if(client.flights.begin(), client.flights.end(), [of](const Flight& f) {
            return (of == nullptr || f.file == of) && !f.irp.is_cancelled();
          });
      if (next == client.flights.end()) return;
      next->irp.cancel();
    }
  }

  void go_on_ending(Client& client) {
    if (client.in_end_step || client.state < State::Ending || client.state == State::Over) return;
    client.in_end_step = true;
    while (client.flights.empty() && client.state != State::Over) {
      if (client.state == State::Ending) client.state = State::ClosingFiles;
      if (client.state == State::ClosingFiles && client.files.empty()) {
        client.state = State::ClosingZero;
      }
      if (client.state == State::ClosingZero && client.zero == nullptr) {
        client.state = State::Over;
      } else {
        send_close(client, client.state == State::ClosingFiles ? *client.files.begin()->second
                                                               : *client.zero);
      }
    }
    client.in_end_step = false;
  }

  // --- is the answer right? ---

  static Book& book_of(Client& client, File& file, Kind kind) {
    return kind == kChannel || kind == kBacking ? client.zero->book : file.book;
  }
  static Held* named_by(const Flight& flight, File& file) {
    if (flight.shape.named == kNone || flight.in.size() < 4) return nullptr;
    return &book_of(*flight.client, file, flight.shape.named)
                .at({flight.shape.named, named_handle(flight)});
  }
  static std::uint32_t named_handle(const Flight& flight) {
    std::uint32_t handle = 0;
    std::memcpy(&handle, flight.in.data(), sizeof handle);
    return handle;
  }
  static bool is_going(const Flight& flight) {
    return flight.client->state >= State::Ending ||
           (flight.file != nullptr && flight.file->closing);
  }
  static std::string what(const Flight& flight) {
    return "request " + std::to_string(flight.irp.code) + ": " + status_text(flight.irp.status) +
           ", " + flight.irp.reason;
  }

  void check_form(const Flight& flight) {
    const io::Irp& irp = flight.irp;
    const bool ok = irp.status == Status::Ok;
    EXPECT_EQ(ok, irp.reason.empty()) << what(flight);
    EXPECT_TRUE(ok || irp.out_size == 0) << what(flight);
    if (irp.status == Status::Cancelled) {
      EXPECT_TRUE(irp.is_cancelled() || is_going(flight)) << what(flight);
    }
    if (irp.status == Status::DeviceRemoved && irp.major == io::Major::DeviceControl &&
        flight.file->object.number() != 0) {
      EXPECT_TRUE(flight.file->pulled) << what(flight);
    }
    if (irp.status == Status::Disconnected) {
      EXPECT_TRUE(is_going(flight) || flight.shape.code == Code::WaitEvent) << what(flight);
    }
  }

  void take_note(Flight& flight) {
    const std::uint64_t now = ++tick_;
    Held* named = named_by(flight, *flight.file);
    if (!is_going(flight)) {
      if (flight.irp.status == Status::Ok) {
        accepted(flight, now);
      } else if (named != nullptr) {
        refused(flight);
      }
    }
    if (named == nullptr) return;
    --named->under_way;
    if (flight.shape.destroys) --named->ends;
  }

  void refused(const Flight& flight) {
    const Shape& shape = flight.shape;
    const Book& book = book_of(*flight.client, *flight.file, shape.named);
    const Handle handle{shape.named, named_handle(flight)};
    const std::uint32_t own_ends = shape.destroys ? 1 : 0;
    const bool asks_only =
        shape.code == Code::QueryMr || shape.code == Code::QuerySrq || shape.code == Code::QueryQp;
    if (flight.irp.status == Status::InvalidParameter && (asks_only || shape.destroys)) {
      EXPECT_FALSE(book.had_undisturbed(handle, flight.began, own_ends)) << what(flight);
    }
    if (flight.irp.status == Status::DeviceBusy) {
      // An XRC receive queue pair may be busy with another's request.
      const auto is_other = [&](const auto& client) {
        return std::any_of(client->flights.begin(), client->flights.end(), [&](const Flight& f) {
          return &f != &flight && f.file != nullptr && f.file->object.number() != 0;
        });
      };
      EXPECT_TRUE(has_dependents(flight, handle) ||
                  std::any_of(clients.begin(), clients.end(), is_other))
          << what(flight);
    }
  }

  bool has_dependents(const Flight& flight, const Handle& handle) const {
    const Held* held = book_of(*flight.client, *flight.file, handle.first).find(handle);
    if (held != nullptr && !held->groups.empty()) return true;
    return any_book(flight, handle, [&](const Book& book) { return book.has_user(handle); });
  }
  // Channels are used by queues of all files of a process.
  template <class Is>
  static bool any_book(const Flight& flight, const Handle& handle, Is&& is) {
    if (handle.first != kChannel) return is(flight.file->book);
    const auto& files = flight.client->files;
    return std::any_of(files.begin(), files.end(), [&](const auto& entry) {
      return !entry.second->closing && is(entry.second->book);
    });
  }

  void accepted(Flight& flight, std::uint64_t now) {
    const Shape& shape = flight.shape;
    const auto had = [&](Kind kind, std::uint32_t handle) {
      return book_of(*flight.client, *flight.file, kind).had_since({kind, handle}, flight.began);
    };
    EXPECT_TRUE(Ownership(had).of_request(shape, flight.in))
        << "a handle that is not the sender's was accepted by " << what(flight);
    if (shape.code == Code::Attach) {
      flight.client->attached = true;
      flight.client->attach =
          read_as<control::AttachOut>(std::span(flight.out).first(flight.irp.out_size));
    }
    Held* named = named_by(flight, *flight.file);
    if (shape.destroys) released(flight, *named, now);
    if (shape.creates != kNone) created(flight, now);
    if (shape.code == Code::ReregMr) {
      change_uses(named->uses, read_as<control::ReregMrIn>(flight.in));
    }
    if (shape.code == Code::AttachMcast || shape.code == Code::DetachMcast) {
      const auto in = read_as<control::McastIn>(flight.in);
      if (shape.code == Code::AttachMcast) named->groups.emplace(in.mgid, in.mlid);
      if (shape.code == Code::DetachMcast) named->groups.erase({in.mgid, in.mlid});
    }
  }

  void released(const Flight& flight, Held& held, std::uint64_t now) {
    const Handle handle{flight.shape.named, named_handle(flight)};
    ASSERT_GT(held.count, 0u) << what(flight);
    held.disturbed = now;
    if (--held.count > 0) return;
    held.released = now;
    EXPECT_FALSE(
        any_book(flight, handle, [&](const Book& book) { return book.has_certain_user(handle); }))
        << "destroyed although others depend on it: " << what(flight);
  }

  void created(const Flight& flight, std::uint64_t now) {
    const Shape& shape = flight.shape;
    const Handle handle{shape.creates, static_cast<std::uint32_t>(flight.irp.information)};
    const bool shared = shape.code == Code::OpenQp || shape.code == Code::OpenXrcd;
    EXPECT_TRUE(shared || !is_known(handle)) << "a handle was given twice: " << what(flight);
    Held& held = book_of(*flight.client, *flight.file, handle.first).at(handle);
    held.disturbed = now;
    if (held.count++ > 0) return;
    held.uses = uses_of(shape.code, flight.in);
    held.groups.clear();
  }

  bool is_known(const Handle& handle) const {
    const auto knows = [&](const File& file) { return !file.closing && file.book.has(handle); };
    return std::any_of(clients.begin(), clients.end(), [&](const auto& client) {
      return client->is_open() &&
             (knows(*client->zero) ||
              std::any_of(client->files.begin(), client->files.end(),
                          [&](const auto& entry) { return knows(*entry.second); }));
    });
  }

  Bench& bench_;
  std::uint64_t tick_ = 0;
  std::uint64_t last_session_ = 0;
};

}  // namespace ib::drivers::test
