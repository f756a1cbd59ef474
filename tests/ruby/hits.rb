# Procedures and handlers for test_ruby.py.

class Hits < Tokaido::Procedures
  write def count(tx, page) = tx[:hits].increment(page)
  read def top(tx, n) = tx[:hits].scan.max_by(n.to_i) { |page, count| count.to_i }
  read def echo(tx, *arguments) = arguments
  read def nothing(tx) = nil
  read def shout(tx, inputs) = inputs.to_h { |name, value| [name, value.upcase] }
  read def join(tx, key, value) = "#{key}:#{value}"
  read def writes(tx) = tx[:hits].put("a", 1)

  write def spend(tx, who, amount)
    left = tx[:purses].increment(who, -Integer(amount))
    refuse "#{who} has not so much", code: "POOR", status: 402 if left < 0
    left
  end

  write def hash(tx, key)
    tx.command(:hset, key, "a", 1, "b", 2)
    tx.command(:hgetall, key)
  end

  write def spin(tx)
    tx[:main].put("spinning", 1)
    begin
      loop {}
    rescue Exception
      retry
    end
  end

  write def hoard(tx)
    tx[:main].put("hoarding", 1)
    hoard = []
    loop { hoard << "x" * 100_000 }
  end

  write def fail(tx)
    tx[:main].put("failed", 1)
    nil.upcase
  end

  write def cached(tx, key, value)
    tx[:sessions].put(key, value)
    tx[:sessions].get(key)
  end

  get "/ruby/:page" do |tx, req, res|
    res.headers["x-page"] = req.params[:page]
    { page: req[:page], query: req.query.to_h, hits: tx[:hits].get(req[:page]).to_i }
  end

  post "/ruby/:page" do |tx, req, res|
    res.status = 201
    tx[:hits].increment(req[:page], req.json["by"]).to_s
  end
end
